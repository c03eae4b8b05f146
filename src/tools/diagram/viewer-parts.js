// Pieces of the page, made of text alone: nothing that a trace says is ever read as HTML.

const MANY = 600; // numbers of a field that are shown at once
const SOME = 24; // links in a list before the rest is asked for
const WAYS = { forward: "→ forward", backward: "← backward", both: "⇄ forward and backward" };

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== false) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

// A record as the page's main part: what it is, its words, and its numbers by field.
function recordCard(model, index, shown) {
  const record = model.record(index);
  const words = record.fields.filter((field) => !field.numbers);
  const keys = record.path.slice(record.kind.length);
  return [
    element("header", { class: `record-head ${record.direction ?? ""}` },
      element("h2", { id: "record-title", tabindex: "-1" }, index === -1 ? "The fixture" : record.kind,
        keys.startsWith("[") ? element("span", { class: "keys" }, ` ${keys.slice(1, -1)}`) : null),
      element("p", { class: "facts" },
        record.direction
          ? element("span", { class: `way ${record.direction}` }, WAYS[record.direction]) : null,
        element("span", {}, index === -1 ? "the numbers that everything starts from"
          : `line ${record.line} of the trace`)),
      record.meaning ? element("p", { class: "meaning" }, record.meaning) : null),
    words.length ? wordList(words) : null,
    ...record.fields.map((field, fieldIndex) => field.numbers
      ? fieldPart(model, { record: index, field: fieldIndex, flat: null }, shown) : null),
  ].filter((part) => part !== null);
}

function wordList(fields) {
  return element("dl", { class: "words" }, ...fields.map((field) => element("div", {},
    element("dt", {}, field.key),
    element("dd", {},
      element("span", { class: "value" }, field.text ?? ""),
      field.meaning ? element("small", {}, field.meaning) : null))));
}

function fieldPart(model, place, shown) {
  const field = model.field(place);
  const title = `field-${place.field}`;
  return element("section", { class: `field${field.gradientOf ? " gradient" : ""}`, "aria-labelledby": title },
    element("h3", { id: title }, field.key,
      field.formula ? element("span", { class: "formula" }, ` = ${withSigns(field.formula)}`) : null),
    element("p", { class: "about" }, field.meaning ?? "",
      element("span", { class: "shape" }, `shape ${shapeText(field)}`)),
    numberGrid(model, place, shown, (number) => numberButton(model, number)),
    heatPart(model, place));
}

// All records' values of a field as a heat map, whose cells are numbers to point at.
function heatPart(model, place) {
  const found = model.gathered(place);
  if (!found) return null;
  const fields = model.record(place.record).fields;
  const matrix = ({ numbers, shape }) => numbers && shape.length === 0;
  const open = matrix(fields[place.field]) && !fields.slice(place.field + 1).some(matrix);
  const places = [...found.rows.values()].flat();
  const most = largest(places.map((number) => model.text(number)));
  const cell = (number) => {
    const button = numberButton(model, number, model.name(number));
    button.textContent = model.short(number, Math.min(model.digits, CELL_DIGITS));
    button.className = "cell";
    shade(button, model.text(number), most);
    return element("td", {}, button);
  };
  const [down, across] = found.names;
  const title = `${model.field(place).key}: ${down} \u00d7 ${across || "index"}`;
  return element("details", { class: "heat", open },
    element("summary", {}, title),
    element("div", { class: "scrolls", tabindex: "0", role: "region", "aria-label": title },
      element("table", {},
        element("tr", {}, element("td", {}), ...found.columns.map((name) => element("th", { scope: "col" }, name))),
        ...[...found.rows].map(([name, numbers]) => element("tr", {},
          element("th", { scope: "row" }, name), ...numbers.map(cell))))));
}

function largest(texts) {
  return texts.map((text) => Math.abs(Number(text))).filter(Number.isFinite).reduce((one, other) => Math.max(one, other), 0);
}

// How large a number is among others, as a colour behind it; the sign says which.
function shade(button, text, most) {
  const value = Number(text);
  if (!most || !Number.isFinite(value)) return;
  button.style.setProperty("--heat", (Math.abs(value) / most).toFixed(3));
  button.classList.add(value < 0 ? "minus" : "plus");
}

// The numbers of a field in rows of its last axis; a list wraps.
function numberGrid(model, place, shown, made) {
  const field = model.field(place);
  const rows = field.shape.length > 1 ? field.shape.at(-1) : 0;
  const grid = element("div", { class: rows ? "numbers matrix" : "numbers" });
  if (rows) grid.style.gridTemplateColumns = `repeat(${rows}, max-content)`;
  const count = shown > MANY ? field.numbers.length : Math.min(field.numbers.length, MANY);
  const most = rows ? largest(field.numbers) : 0;
  const add = (from, to) => {
    for (let flat = from; flat < to; flat += 1) {
      const number = made({ ...place, flat });
      shade(number, field.numbers[flat], most);
      grid.append(number);
    }
  };
  add(0, count);
  if (field.numbers.length === 0) grid.append("none");
  if (count < field.numbers.length) {
    const more = element("button", { type: "button", class: "more" }, `all ${field.numbers.length} numbers`);
    more.addEventListener("click", () => {
      more.remove();
      add(count, field.numbers.length);
    });
    grid.append(more);
  }
  return grid;
}

const placeOfButton = new WeakMap();

function numberButton(model, place, name = null) {
  const index = indexText(model.field(place), place.flat).slice(1, -1);
  const text = model.text(place);
  const label = `${name ?? model.field(place).key}, ${index && !name ? `index ${index}, ` : ""}${text}`;
  const button = element("button", { type: "button", class: "number", "aria-label": label }, model.short(place));
  placeOfButton.set(button, place);
  return button;
}

// A link to a place, which says what it says.
function link(model, place, text, label = null) {
  return element("a", { href: model.hash(place), "aria-label": label }, text);
}

function numberLink(model, place) {
  const text = model.text(place);
  return element("a", { href: model.hash(place), class: "operand", "aria-label": `${text}, ${model.name(place)}` }, text);
}

// What there is to say about a number, or about a field where no number is chosen.
function numberPanel(model, place) {
  const field = model.field(place);
  if (!field) return [emptyPanel(model)];
  const chosen = place.flat !== null && field.numbers;
  return [
    element("h2", { id: "number-title" }, model.name(place, false)),
    chosen ? element("p", { class: "big" }, model.text(place)) : null,
    chosen ? equation(model, place) : null,
    field.note ? element("p", { class: "notice" }, noteText(model, place)) : null,
    facts(model, place),
    chosen ? operandParts(model, place) : null,
    chosen ? usesPart(model, place) : null,
  ].filter((part) => part !== null);
}

function emptyPanel(model) {
  const explained = model.records.some((record) => record.fields.some((field) => field.works));
  const hint = explained
    ? "Point at a number to see how it is worked out, where its operands come from and where it is used."
    : "Point at a number to see where it stands.";
  return element("div", { class: "hint" }, element("h2", { id: "number-title" }, "A number"), element("p", {}, hint));
}

function equation(model, place) {
  const field = model.field(place);
  if (!field.works) return null;
  const pieces = model.pieces(field.works[place.flat]);
  if (pieces.every((piece) => typeof piece === "string") && field.type === "integer") return null;
  const comes = field.comes?.[place.flat];
  return element("div", { class: "equation" },
    element("p", { class: "worked" }, `${model.name(place, false)} = `,
      ...pieces.map((piece) => typeof piece === "string" ? withSigns(piece) : numberLink(model, piece))),
    element("p", { class: "result" }, `= ${comes || model.text(place)}`),
    comes ? element("small", {}, "from the operands as they are printed; the trace has ",
      model.text(place)) : null);
}

function noteText(model, place) {
  const note = model.field(place).note;
  return note === "bounded"
    ? `Left out to keep this page small. llm-trace explain FILE --at '${model.name(place)}' works it out.`
    : `Not worked out here: ${note}`;
}

function facts(model, place) {
  const field = model.field(place);
  const of = field.targets && place.flat !== null ? targetNames(model, field.targets[place.flat]) : [];
  const rows = [
    ["formula", field.formula ? `${field.key} = ${withSigns(field.formula)}` : ""],
    ["meaning", field.meaning],
    ["gradient", field.gradientOf ? `of ${field.loss ? withSigns(field.loss) : "the loss"} with respect to ${withSigns(field.gradientOf)}` : ""],
    ["that is", of.length ? element("span", {}, "how the loss changes with ", ...of) : ""],
    ["shape", field.numbers ? shapeText(field) : ""],
    ["type", field.type],
    ["stands in", link(model, { ...place, field: null, flat: null }, model.record(place.record).path)],
  ];
  return element("dl", { class: "facts" }, ...rows.filter(([, value]) => value).map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function targetNames(model, expression) {
  return model.pieces(expression).map((piece) =>
    typeof piece === "string" ? withSigns(piece) : link(model, piece, model.name(piece)));
}

// The fields that a number's operands stand in, with the operands marked.
function operandParts(model, place) {
  const operands = model.operands(place);
  if (!operands.length) return null;
  const fields = Map.groupBy(operands, (operand) => `${operand.record}.${operand.field}`);
  return element("section", { class: "operands", "aria-labelledby": "operands-title" },
    element("h3", { id: "operands-title" }, "Where its operands come from"),
    ...[...fields.values()].map((used) => sourceField(model, place, used)));
}

// One of these fields, whole if it is not too large.
function sourceField(model, place, used) {
  const source = { ...used[0], flat: null };
  const keys = new Set(used.map(keyOf));
  const whole = model.field(source).numbers.length <= MANY;
  return element("div", { class: "source-field" },
    element("p", {}, link(model, source, model.name(source, source.record !== place.record))),
    whole
      ? numberGrid(model, source, 0, (number) => keys.has(keyOf(number))
        ? numberLink(model, number)
        : element("span", { class: "other" }, model.text(number)))
      : element("div", { class: "numbers" }, ...used.map((number) => numberLink(model, number))));
}

function usesPart(model, place) {
  const uses = model.uses(place);
  if (!uses.length) return null;
  const list = element("ul", {});
  const add = (places) => list.append(...places.map((user) => element("li", {},
    link(model, user, model.name(user, user.record !== place.record)), ` = ${model.text(user)}`)));
  add(uses.slice(0, SOME));
  const part = element("section", { class: "uses", "aria-labelledby": "uses-title" },
    element("h3", { id: "uses-title" }, `Where it is used (${uses.length})`), list);
  if (uses.length > SOME) {
    const more = element("button", { type: "button", class: "more" }, `all ${uses.length}`);
    more.addEventListener("click", () => {
      more.remove();
      add(uses.slice(SOME));
    });
    part.append(more);
  }
  return part;
}

// The records by kind, in the order in which kinds come.
function outlineParts(model) {
  const kinds = new Map();
  model.records.forEach((record, index) => kinds.set(record.kind, [...(kinds.get(record.kind) ?? []), index]));
  const item = (index) => {
    const record = model.record(index);
    const keys = record.path.slice(record.kind.length);
    const text = keys.startsWith("[") ? keys.slice(1, -1) : `line ${record.line}`;
    const place = { record: index, field: null, flat: null };
    return element("li", {}, element("a", { href: model.hash(place), "data-record": index, class: record.direction }, text));
  };
  const parts = [...kinds].map(([kind, found]) => element("section", {},
    element("h3", { class: model.record(found[0]).direction }, kind),
    element("ul", {}, ...found.map(item))));
  if (model.fixture) {
    const place = { record: -1, field: null, flat: null };
    parts.unshift(element("p", {}, element("a", { href: model.hash(place), "data-record": -1 }, "The fixture")));
  }
  return parts;
}
