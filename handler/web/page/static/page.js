// What makes an open page live. Without it every page works, and is as old as its last load.

const body = document.body;
const POLL = 10000; // milliseconds between two looks where no events come
const said = document.getElementById("said");
const connection = document.getElementById("connection");

// Replaces an element by its newer self; what is open, focused or hidden by a search stays so.
function replace(id, html) {
  const old = document.getElementById(id);
  if (!old) return;
  const made = document.createElement("template");
  made.innerHTML = html;
  const fresh = made.content.firstElementChild;
  if (!fresh || fresh.id !== id) return;
  const [before, after] = [old.querySelectorAll("details"), fresh.querySelectorAll("details")];
  if (before.length === after.length) after.forEach((each, place) => { each.open = before[place].open; });
  if (still(fresh) === still(old)) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const steps = focused && path(old, focused);
  if (old.dataset.word !== fresh.dataset.word && fresh.dataset.word) {
    said.textContent = `${id === "live" ? document.querySelector("h1").textContent : id.slice(4)}: ${fresh.dataset.word}`;
  }
  old.replaceWith(fresh);
  if (focused) successor(fresh, focused, steps)?.focus({ preventScroll: true });
  search();
  if (fresh.dataset.state) tally();
}

// What an element is but for ages, which grow here, too.
const still = (element) => element.outerHTML.replace(/(<time [^>]*>)[^<]*/g, "$1");

// The same link or fold in what is newer; where there is none, what stands in its place.
function successor(from, old, steps) {
  const same = (each) => each.textContent === old.textContent && each.getAttribute("href") === old.getAttribute("href");
  return [...from.querySelectorAll(old.tagName)].find(same) ?? steps.reduce((each, step) => each?.children[step], from);
}

// Where an element stands within another.
const path = (from, to) => to === from ? [] : [...path(from, to.parentElement), [...to.parentElement.children].indexOf(to)];

// --- changes, as events or by asking again; a tab that nobody looks at takes neither a connection nor an answer
const { topic, streams } = body.dataset;
let [events, since, turn] = [null, streams, 0]; // since: how new the page is, for what the next stream begins with

function attend() {
  if (document.hidden) return events?.close();
  if (topic) streams ? listen() : say(`looks every ${POLL / 1000} s`, false);
}

function listen() {
  events = new EventSource(`/ui/live?${new URLSearchParams({ topic, since })}`);
  for (const kind of ["open", "back"]) events.addEventListener(kind, () => say("live", true));
  events.addEventListener("away", () => say("the worker doesn't answer", false));
  events.addEventListener("replace", ({ data, lastEventId }) => {
    since = lastEventId || since;
    replace(JSON.parse(data).id, JSON.parse(data).html);
  });
  events.addEventListener("error", () => (events.readyState === EventSource.CLOSED ? look() : say("reconnecting", false)));
}

function say(text, on, address) {
  connection.replaceChildren(address ? Object.assign(document.createElement("a"), { href: address, textContent: text }) : text);
  connection.toggleAttribute("data-on", on);
}

async function look() {
  const fresh = await load(location.href);
  if (fresh === null) say("no answer", false);
  if (!fresh || events?.readyState === EventSource.OPEN) return;
  say(`looks every ${POLL / 1000} s`, false);
  since = fresh.body.dataset.streams;
  for (const each of fresh.querySelectorAll("#live, #acts, tr[id^='row-']")) replace(each.id, each.outerHTML);
}

// Null: no answer; undefined: the session is over.
async function load(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, redirect: "manual" });
    if (answer.type === "opaqueredirect") return say("sign in again", false, location.pathname + location.search);
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null;
  }
}

document.addEventListener("visibilitychange", attend);
setInterval(() => {
  if (!topic || document.hidden || (events && events.readyState !== EventSource.CLOSED)) return;
  turn += 1;
  (streams && turn % 6 === 0 ? listen : look)();
}, POLL);

// --- parts that come from another page, now and some seconds after each answer; of one that has a last, more seldom as that takes longer
for (const { id, dataset } of document.querySelectorAll("[data-from]")) {
  let { from, every, last } = { ...dataset };
  const ask = async () => {
    const fresh = document.hidden ? null : (await load(from))?.getElementById(id);
    if (fresh) replace(id, fresh.outerHTML);
    if (fresh && last && !fresh.dataset.from) return;
    setTimeout(ask, every * 1000);
    if (last && !document.hidden) every = Math.min(every * 1.05, 60);
  };
  ask();
}

// --- the search, while it is typed
const field = document.getElementById("q");

function search() {
  const words = field ? field.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
  for (const row of document.querySelectorAll("tr[data-text]")) row.hidden = !words.every((word) => row.dataset.text.includes(word));
}

field?.addEventListener("input", search);
document.getElementById("sort")?.addEventListener("change", (event) => event.target.form.requestSubmit());
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && field && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    field.focus();
  }
});

// --- how many targets stand how, as rows change; under a filter the numbers stay those of the last load
function tally() {
  const rows = [...document.querySelectorAll("tr[data-state]")];
  let at = 0;
  for (const chip of document.querySelectorAll(".chips[data-whole] [data-key]")) {
    const count = rows.filter((row) => row.dataset.state === chip.dataset.key).length;
    chip.hidden = !count;
    chip.querySelector("b").textContent = count;
    for (const [name, of] of [["x", at], ["width", count]]) document.getElementById(`bar-${chip.dataset.key}`).setAttribute(name, of);
    at += count;
  }
}

// --- ages, which grow, and what is to come
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];
setInterval(() => {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const ahead = each.className === "ahead";
    const seconds = Math.max((Date.now() - Date.parse(each.dateTime)) / (ahead ? -1000 : 1000), 0);
    const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
    const span = `${Math.floor(seconds / size)} ${unit}`;
    const text = !ahead ? `${span} ago` : seconds ? `in ${span}` : "at once";
    if (each.textContent !== text) each.textContent = text;
  }
}, 5000);

attend();
