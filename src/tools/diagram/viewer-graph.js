// The drawing of the computation, if the page has one: its nodes lead to records and fields.

const SCALES = [0.2, 0.3, 0.45, 0.6, 0.8, 1, 1.3];

class Graph {
  constructor(box, model, go) {
    this.box = box;
    this.model = model;
    this.svg = box.querySelector("svg");
    this.edges = [...box.querySelectorAll("[data-target]")];
    this.current = 0; // the record that is shown
    const places = [...box.querySelectorAll("[data-record]")].map((node) => [node, this.place(node)]);
    this.places = new Map(places.filter(([, place]) => place !== null));
    this.scale = 0.8;
    if (!this.svg) return; // a page without a drawing
    this.svg.setAttribute("role", "group"); // as an image, its nodes would be hidden
    for (const [node, place] of this.places) {
      node.setAttribute("role", "button");
      node.addEventListener("click", () => go(this.nearest(place)));
      node.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        go(this.nearest(place));
      });
    }
    const { width } = this.svg.viewBox.baseVal;
    const across = box.clientWidth ? (box.clientWidth - 24) / width : 1;
    const figure = this.svg.querySelector("[data-covers]") !== null;
    this.resize(figure ? Math.min(1, across) : this.scale);
  }

  // Where a node leads: to its field, or to its record, or nowhere.
  place(node) {
    const record = node.dataset.record === "" ? -1 : Number(node.dataset.record);
    const fields = this.model.record(record)?.fields;
    if (!fields) return null;
    const field = fields.findIndex(({ key }) => key === node.dataset.field);
    const keys = node.dataset.fields?.split(" ") ?? [];
    const covers = node.dataset.covers === undefined ? null : {
      records: node.dataset.covers.split(" ").map((run) => run.split("-").map(Number)),
      fields: new Set(keys.map((key) => fields.findIndex((other) => other.key === key))),
    };
    return { record, field: field < 0 ? null : field, flat: null, covers };
  }

  // Whether a node stands for a record; one that stands for many says for which.
  stands({ record, covers }, index) {
    return covers ? covers.records.some(([first, last]) => first <= index && index <= last) : record === index;
  }

  // The place of a node in the record that is shown, if the node stands for that.
  nearest({ record, field, flat, covers }) {
    const here = covers && this.stands({ record, covers }, this.current);
    return { record: here ? this.current : record, field, flat };
  }

  resize(scale) {
    this.scale = scale;
    const { width, height } = this.svg.viewBox.baseVal;
    this.svg.setAttribute("width", Math.round(width * scale));
    this.svg.setAttribute("height", Math.round(height * scale));
  }

  step(direction) {
    const scales = direction > 0 ? SCALES : [...SCALES].reverse();
    this.resize(scales.find((scale) => (scale - this.scale) * direction > 0.001) ?? this.scale);
  }

  fit() {
    const { width, height } = this.svg.viewBox.baseVal;
    const room = { width: this.box.clientWidth - 8, height: this.box.clientHeight - 8 };
    this.resize(Math.min(1, room.width / width, room.height / height));
  }

  // Mark the record's nodes, the chosen field among them, and the fields that are its operands.
  show(place, operands) {
    const kind = this.model.record(place.record).kind;
    const exact = [...this.places.values()].some((found) => this.stands(found, place.record));
    this.current = place.record;
    const current = [];
    const chosen = [];
    for (const [node, found] of this.places) {
      const { record, field, covers } = found;
      // Where records of a kind are drawn as one, the one stands for all of them.
      const here = exact ? this.stands(found, place.record) : this.model.record(record).kind === kind;
      const has = (index) => covers ? covers.fields.has(index) : field === index;
      const isChosen = here && place.field !== null && has(place.field);
      const used = operands.some((operand) => this.stands(found, operand.record) && has(operand.field));
      if (here) current.push(node);
      if (isChosen) chosen.push(node);
      node.classList.toggle("current", here);
      node.classList.toggle("chosen", isChosen);
      node.classList.toggle("used", used && !isChosen);
      node.setAttribute("tabindex", here ? "0" : "-1");
    }
    const ends = new Set(chosen.map((node) => node.dataset.node));
    for (const edge of this.edges) edge.classList.toggle("used", ends.has(edge.dataset.target));
    const seen = chosen[0] ?? current[0];
    if (seen) this.reveal(seen);
  }

  // Scroll the drawing, and nothing else, until a node is in sight.
  reveal(node) {
    const box = this.box.getBoundingClientRect();
    const spot = node.getBoundingClientRect();
    const inside = spot.left >= box.left && spot.right <= box.right
      && spot.top >= box.top && spot.bottom <= box.bottom;
    if (inside) return;
    this.box.scrollBy({
      left: (spot.left + spot.right - box.left - box.right) / 2,
      top: (spot.top + spot.bottom - box.top - box.bottom) / 2,
    });
  }
}
