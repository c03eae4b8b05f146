// The page's state is one place, which the address holds, and a number that is pointed at.

const data = JSON.parse(document.getElementById("data").textContent);
const model = new Model(data);
const at = (id) => document.getElementById(id);
const count = model.records.length;
const NUMBERS = "button.number, button.cell"; // of the record, and of all like it
let current = { record: 0, field: null, flat: null };
let pointed = null;
const graph = new Graph(at("graph"), model, (place) => place && go(place));

function go(place) {
  location.hash = model.hash(place); // which comes back as `hashchange`
}

function step(index) {
  const record = Math.min(Math.max(index, 0), count - 1);
  if (!count || record === current.record) return;
  const alike = current.record >= 0 && model.record(record).kind === model.record(current.record).kind;
  const field = alike && current.field !== null ? model.record(record).fields[current.field] : null;
  const kept = field && current.flat !== null && current.flat < (field.numbers?.length ?? 0);
  const place = kept ? { ...current, record } : { record, field: null, flat: null };
  location.replace(model.hash(place)); // steps are no history; jumps to an operand are
  show(place);
  keepInView();
}

// Scroll until the record begins in sight, below the steps.
function keepInView() {
  const top = at("record").getBoundingClientRect().top;
  const bar = document.querySelector(".steps").getBoundingClientRect().bottom;
  if (top < bar || top > innerHeight * 0.7) scrollBy({ top: top - bar - 8 });
}

// The first record on the way there: what comes before are sizes.
function opening() {
  const record = model.records.findIndex(({ direction }) => direction === "forward" || direction === "both");
  return { record: Math.max(record, 0), field: null, flat: null };
}

// Show a place: its record, and in it the number.
function show(place) {
  const other = place.record !== current.record || !at("record").hasChildNodes();
  const focused = at("record").contains(document.activeElement);
  current = place;
  pointed = null;
  if (other) {
    at("record").replaceChildren(...recordCard(model, place.record, place.flat ?? 0));
    showStep();
    if (focused) at("record-title").focus({ preventScroll: true });
  } else if (place.flat !== null && !buttonOf(place)) {
    at("record").replaceChildren(...recordCard(model, place.record, place.flat));
  }
  showNumber();
  at("said").textContent = at("number").querySelector(".equation")?.textContent ?? "";
}

function showStep() {
  const record = model.record(current.record);
  const step = current.record + 1;
  const [where, what] = step === 0
    ? ["the fixture,", `before record 1 of ${count}`] : [`record ${step} of ${count}:`, record.path];
  at("status").replaceChildren(element("span", {}, where), " ", element("span", {}, what));
  at("progress").max = count;
  at("progress").value = step;
  for (const id of ["first", "previous"]) at(id).disabled = current.record <= 0;
  for (const id of ["next", "last"]) at(id).disabled = current.record >= count - 1;
  for (const item of at("outline").querySelectorAll("a")) {
    const here = Number(item.dataset.record) === current.record;
    if (here) item.setAttribute("aria-current", "step");
    else item.removeAttribute("aria-current");
    if (here) revealIn(at("outline"), item);
  }
  document.title = `${record.path} · ${data.title}`;
}

// Mark the number that is pointed at, or else the chosen one, with its operands and its users.
function showNumber() {
  const place = pointed ?? current;
  const operands = model.operands(place);
  const roles = [
    ["operand", operands],
    ["user", place.flat === null ? [] : model.uses(place)],
    ["chosen", place.flat === null ? [] : [place]],
  ].map(([role, places]) => [role, new Set(places.map(keyOf))]);
  for (const button of at("record").querySelectorAll(NUMBERS)) {
    const key = keyOf(placeOfButton.get(button));
    for (const [role, keys] of roles) button.classList.toggle(role, keys.has(key));
    if (current.flat !== null && key === keyOf(current)) button.setAttribute("aria-current", "true");
    else button.removeAttribute("aria-current");
  }
  const panel = at("number");
  panel.replaceChildren(...numberPanel(model, place));
  panel.classList.toggle("empty", place.field === null);
  if (graph.svg) graph.show(place, operands);
}

function point(place) {
  if (place === null ? pointed === null : pointed && samePlace(place, pointed)) return;
  pointed = place;
  showNumber();
}

function revealIn(box, item) {
  const room = box.getBoundingClientRect();
  const spot = item.getBoundingClientRect();
  if (spot.top < room.top || spot.bottom > room.bottom) box.scrollBy({ top: spot.top - room.top - room.height / 2 });
}

function buttonOf(place) {
  return [...at("record").querySelectorAll("button.number")]
    .find((button) => samePlace(placeOfButton.get(button), place));
}

// Up and down, from number to number of the record.
function focusNumber(button, direction) {
  const buttons = [...at("record").querySelectorAll("button.number")];
  buttons[buttons.indexOf(button) + direction]?.focus();
}

const KEYS = {
  ArrowRight: () => step(current.record + 1),
  j: () => step(current.record + 1),
  ArrowLeft: () => step(current.record - 1),
  k: () => step(current.record - 1),
  Home: () => step(0),
  End: () => step(count - 1),
  "?": () => at("keys").showModal(),
};

function onKey(event) {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || at("keys").open || event.target.matches?.("input")) return;
  const button = event.target.closest?.("button.number");
  const scrolls = event.target.closest?.("pre, #graph") && event.target.scrollWidth > event.target.clientWidth;
  if (button && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    event.preventDefault();
    focusNumber(button, event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape" && current.flat !== null) {
    go({ ...current, field: null, flat: null });
  } else if (Object.hasOwn(KEYS, event.key) && !scrolls) {
    event.preventDefault();
    KEYS[event.key]();
  }
}

function onHash() {
  const place = model.find(location.hash) ?? opening();
  if (place.record === current.record && place.field === current.field && place.flat === current.flat
    && at("record").hasChildNodes()) return;
  const fromLink = at("number").contains(document.activeElement);
  showWithNumber(place);
  if (fromLink) (buttonOf(place) ?? at("record-title")).focus();
}

function showWithNumber(place) {
  show(place);
  buttonOf(place)?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function start() {
  document.documentElement.classList.add("scripted");
  at("outline").replaceChildren(...outlineParts(model));
  at("source").open = false;
  if (!graph.svg) at("graph-section").remove();
  const narrow = matchMedia("(max-width: 60rem)").matches;
  at("outline-details").open = !narrow;
  if (graph.svg) at("graph-details").open = !narrow;
  listen();
  if (count) showWithNumber(model.find(location.hash) ?? opening());
}

function listen() {
  const record = at("record");
  const pointAt = (event) => {
    const button = event.target.closest(NUMBERS);
    if (button) point(placeOfButton.get(button));
  };
  record.addEventListener("pointerover", pointAt);
  record.addEventListener("focusin", pointAt);
  record.addEventListener("pointerleave", () => current.flat !== null && point(null));
  record.addEventListener("click", (event) => {
    const button = event.target.closest(NUMBERS);
    if (button) go(placeOfButton.get(button));
  });
  at("first").addEventListener("click", () => step(0));
  at("previous").addEventListener("click", () => step(current.record - 1));
  at("next").addEventListener("click", () => step(current.record + 1));
  at("last").addEventListener("click", () => step(count - 1));
  at("keys-button").addEventListener("click", () => at("keys").showModal());
  at("theme-button").addEventListener("click", () => setDark(!isDark()));
  at("digits").addEventListener("input", (event) => showDigits(Number(event.target.value)));
  if (graph.svg) {
    at("smaller").addEventListener("click", () => graph.step(-1));
    at("larger").addEventListener("click", () => graph.step(1));
    at("whole").addEventListener("click", () => graph.fit());
  }
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", onHash);
  addEventListener("beforeprint", () => { at("source").open = true; });
  const system = matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", showTheme);
  showTheme();
}

function showDigits(digits) {
  model.digits = digits;
  at("digits-said").textContent = digits === ALL_DIGITS ? "all" : String(digits);
  at("record").replaceChildren(...recordCard(model, current.record, current.flat ?? 0));
  showNumber();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function setDark(dark) {
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  showTheme();
}

function showTheme() {
  at("theme-button").setAttribute("aria-pressed", String(isDark()));
}

start();
