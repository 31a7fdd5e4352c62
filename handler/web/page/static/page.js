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
  if (!fresh || fresh.id !== id || fresh.outerHTML === old.outerHTML) return;
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const steps = focused && path(old, focused);
  const [before, after] = [old.querySelectorAll("details"), fresh.querySelectorAll("details")];
  if (before.length === after.length) after.forEach((each, place) => { each.open = before[place].open; });
  if (old.dataset.word !== fresh.dataset.word && fresh.dataset.word) {
    said.textContent = `${id === "live" ? document.querySelector("h1").textContent : id.slice(4)}: ${fresh.dataset.word}`;
  }
  old.replaceWith(fresh);
  if (focused) successor(fresh, focused, steps)?.focus({ preventScroll: true });
  search();
  if (fresh.dataset.state) tally();
}

// The same link or fold in what is newer; where there is none, what stands in its place.
function successor(from, old, steps) {
  const same = (each) => each.textContent === old.textContent && each.getAttribute("href") === old.getAttribute("href");
  return [...from.querySelectorAll(old.tagName)].find(same) ?? follow(from, steps);
}

// Where an element stands within another.
function path(from, to) {
  const steps = [];
  for (let each = to; each !== from; each = each.parentElement) steps.unshift([...each.parentElement.children].indexOf(each));
  return steps;
}

function follow(from, steps) {
  return steps.reduce((each, step) => each?.children[step], from);
}

// --- changes, as events or by asking again
function listen() {
  if (!body.dataset.topic) return;
  if (!("streams" in body.dataset)) return poll();
  const events = new EventSource(`/ui/live?topic=${encodeURIComponent(body.dataset.topic)}`);
  events.addEventListener("open", () => say("live", true));
  events.addEventListener("back", () => say("live", true));
  events.addEventListener("away", () => say("the worker doesn't answer", false));
  events.addEventListener("replace", (event) => {
    const { id, html } = JSON.parse(event.data);
    replace(id, html);
  });
  events.addEventListener("error", () => {
    say("reconnecting", false);
    if (events.readyState === EventSource.CLOSED) poll();
  });
}

function say(text, on) {
  if (!connection) return;
  connection.textContent = text;
  connection.toggleAttribute("data-on", on);
}

function poll() {
  say(`looks every ${POLL / 1000} s`, false);
  setInterval(async () => {
    if (document.hidden) return;
    const fresh = await load(location.href);
    if (!fresh) return say("no answer", false);
    say(`looks every ${POLL / 1000} s`, false);
    for (const each of fresh.querySelectorAll("#live, #acts, tr[id^='row-']")) replace(each.id, each.outerHTML);
  }, POLL);
}

async function load(address) {
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, redirect: "error" });
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  } catch {
    return null;
  }
}

// --- parts that come from another page, now and some seconds after each answer, until one is the last
for (const { id, dataset } of document.querySelectorAll("[data-from]")) {
  const { from, every, last } = { ...dataset };
  const look = async () => {
    const fresh = document.hidden ? null : (await load(from))?.getElementById(id);
    if (fresh) replace(id, fresh.outerHTML);
    if (!(fresh && last && !fresh.dataset.from)) setTimeout(look, Number(every) * 1000);
  };
  look();
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
  const states = [...document.querySelectorAll("tr[data-state]")].map((row) => row.dataset.state);
  let at = 0;
  for (const chip of document.querySelectorAll(".chips[data-whole] [data-key]")) {
    const count = states.filter((state) => state === chip.dataset.key).length;
    chip.hidden = !count;
    chip.querySelector("b").textContent = count;
    const bar = document.getElementById(`bar-${chip.dataset.key}`);
    bar.setAttribute("x", at);
    bar.setAttribute("width", count);
    at += count;
  }
}

// --- ages, which grow
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"]];
setInterval(() => {
  for (const each of document.querySelectorAll("time[datetime]")) {
    const seconds = Math.max((Date.now() - Date.parse(each.dateTime)) / 1000, 0);
    const [size, unit] = UNITS.find(([size]) => seconds >= size) ?? [1, "s"];
    const text = `${Math.floor(seconds / size)} ${unit} ago`;
    if (each.textContent !== text) each.textContent = text;
  }
}, 5000);

listen();
