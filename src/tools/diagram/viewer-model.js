"use strict";

// What the page knows: records, places in them, and what leads from a number to others.
// A place is {record, field, flat}; the fixture is record -1; field and flat may be null.

const ALL_DIGITS = 12;
const MOST_CELLS = 2500; // of a heat map
const CELL_DIGITS = 4;
const MARK = /\{(-?\d+)\.(\d+)\.(\d+)\}/g;

class Model {
  constructor(data) {
    this.records = data.records;
    this.fixture = data.fixture;
    this.usesOf = null; // worked out when first asked for
    this.digits = ALL_DIGITS; // decimals that are shown
  }

  record(index) {
    return index === -1 ? this.fixture : this.records[index];
  }

  field(place) {
    return place.field === null ? null : this.record(place.record).fields[place.field];
  }

  text(place) {
    return this.field(place).numbers[place.flat];
  }

  // The number with no more decimals than are asked for; what would be zero then keeps its size.
  short(place, digits = this.digits) {
    const text = this.text(place);
    const decimals = /^-?\d+\.(\d+)$/.exec(text)?.[1].length ?? 0;
    if (digits === ALL_DIGITS || decimals <= digits) return text;
    const fixed = Number(text).toFixed(digits);
    return Number(fixed) === 0 && Number(text) !== 0 ? Number(text).toExponential(Math.max(digits - 1, 0)) : fixed;
  }

  // The keys of a record, from its path: `[["query", "0"], ["source", "3"]]`.
  keys(index) {
    const { kind, path } = this.record(index);
    const inner = path.slice(kind.length).match(/^\[(.*)\]$/)?.[1];
    return inner ? inner.split(",").map((pair) => pair.split("=")) : [];
  }

  // A field over all records of its kind, as rows of places: a scalar over the last two keys, a
  // list over the last one; other keys are as in this record. null where that is no matrix.
  gathered(place) {
    const field = this.field(place);
    const mine = this.keys(place.record);
    const depth = field.shape.length === 0 ? 2 : 1;
    if (place.record < 0 || field.shape.length > 1 || mine.length < depth || !field.numbers.length) return null;
    const fixed = mine.slice(0, mine.length - depth);
    const rows = new Map();
    const columns = new Set();
    this.records.forEach((record, index) => {
      if (record.kind !== this.record(place.record).kind) return;
      const keys = this.keys(index);
      const other = record.fields.findIndex(({ key }) => key === field.key);
      const same = keys.length === mine.length && fixed.every(([, value], at) => keys[at][1] === value);
      if (!same || other < 0 || record.fields[other].numbers?.length !== field.numbers.length) return;
      const row = keys[mine.length - depth][1];
      if (!rows.has(row)) rows.set(row, []);
      for (let flat = 0; flat < field.numbers.length; flat += 1) {
        columns.add(depth === 2 ? keys.at(-1)[1] : String(flat));
        rows.get(row).push({ record: index, field: other, flat });
      }
    });
    const wide = [...rows.values()].every((places) => places.length === columns.size);
    if (rows.size < 2 || columns.size < 2 || !wide || rows.size * columns.size > MOST_CELLS) return null;
    const names = mine.slice(-depth).map(([name]) => name);
    return { names: [names[0], names[1] ?? ""], rows, columns: [...columns] };
  }

  // An expression as pieces: strings, and the places that its marks lead to.
  pieces(expression) {
    const found = [];
    let start = 0;
    for (const mark of expression.matchAll(MARK)) {
      if (mark.index > start) found.push(expression.slice(start, mark.index));
      found.push(placeOf(mark));
      start = mark.index + mark[0].length;
    }
    if (start < expression.length) found.push(expression.slice(start));
    return found;
  }

  // The places of a number's operands, each once.
  operands(place) {
    const field = this.field(place);
    if (!field || place.flat === null || !field.works) return [];
    const places = this.pieces(field.works[place.flat]).filter((piece) => typeof piece !== "string");
    return [...new Map(places.map((operand) => [keyOf(operand), operand])).values()];
  }

  // The places in whose expressions a number stands.
  uses(place) {
    if (this.usesOf === null) this.usesOf = this.allUses();
    return this.usesOf.get(keyOf(place)) ?? [];
  }

  allUses() {
    const uses = new Map();
    this.records.forEach((record, index) => record.fields.forEach((field, fieldIndex) => {
      (field.works ?? []).forEach((work, flat) => {
        const user = { record: index, field: fieldIndex, flat };
        for (const key of new Set([...work.matchAll(MARK)].map((mark) => mark[0]))) {
          if (!uses.has(key)) uses.set(key, []);
          uses.get(key).push(user);
        }
      });
    }));
    return uses;
  }

  // `gated[2]`, or with the record's path before it.
  name(place, withRecord = true) {
    const record = this.record(place.record);
    const field = this.field(place);
    if (field === null) return record.path;
    const index = place.flat === null ? "" : indexText(field, place.flat);
    return `${withRecord ? `${record.path}.` : ""}${field.key}${index}`;
  }

  hash(place) {
    return `#${this.name(place).replaceAll("%", "%25")}`;
  }

  // The place that a hash leads to: a path, or `line-4`, with a field and an index if it has one.
  find(hash) {
    let text = hash.replace(/^#/, "");
    try {
      text = decodeURIComponent(text);
    } catch {
      return null;
    }
    const record = this.findRecord(text);
    if (record === null) return null;
    const rest = text.slice(record.length);
    const matched = /^\.(.*?)(?:\[([\d,]+)\])?$/.exec(rest);
    const fields = this.record(record.index).fields;
    const field = matched ? fields.findIndex(({ key }) => key === matched[1]) : -1;
    if (field < 0) return { record: record.index, field: null, flat: null };
    return { record: record.index, field, flat: flatIndex(fields[field], matched[2]) };
  }

  findRecord(text) {
    let best = null;
    const consider = (name, index) => {
      const fits = text === name || text.startsWith(`${name}.`);
      if (fits && (best === null || name.length > best.length)) best = { index, length: name.length };
    };
    this.records.forEach((record, index) => {
      consider(record.path, index);
      consider(`line-${record.line}`, index);
    });
    if (this.fixture) consider(this.fixture.path, -1);
    return best;
  }
}

function placeOf(mark) {
  return { record: Number(mark[1]), field: Number(mark[2]), flat: Number(mark[3]) };
}

function keyOf(place) {
  return `{${place.record}.${place.field}.${place.flat}}`;
}

function samePlace(one, other) {
  return keyOf(one) === keyOf(other);
}

function indices(shape, flat) {
  const found = [];
  for (const extent of [...shape].reverse()) {
    found.unshift(flat % extent);
    flat = Math.floor(flat / extent);
  }
  return found;
}

function indexText(field, flat) {
  return field.shape.length ? `[${indices(field.shape, flat).join(",")}]` : "";
}

// The row-major index of `1,2` in the field's shape, or of a single number among all.
function flatIndex(field, text) {
  if (!field.numbers) return null;
  if (text === undefined) return field.shape.length ? null : 0;
  const given = text.split(",").map(Number);
  const shape = given.length === 1 ? [field.numbers.length] : field.shape;
  if (given.length !== shape.length || given.some((index, axis) => index >= shape[axis])) return null;
  return given.reduce((flat, index, axis) => flat * shape[axis] + index, 0);
}

function shapeText(field) {
  return field.shape.join(" × ") || "scalar";
}

// An expression with the sign that a reader expects between factors. Numbers stay as they are.
function withSigns(text) {
  return text.replaceAll(" * ", " × ");
}
