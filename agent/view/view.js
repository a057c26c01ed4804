// Fetches a live page again once something was recorded. All of it works without this file.
"use strict";

const news = document.getElementById("news");
let source = null, busy = false, again = false, edited = false;

const main = () => document.getElementById("main");
const isLive = () => main().hasAttribute("data-live");
const opened = (root) => new Map([...root.querySelectorAll("details")].map((one, at) => [one.id || at, one.open]));

async function refresh() {
  if (busy) { again = true; return; }
  busy = true;
  const begun = performance.now();
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, cache: "no-store" });
    if (!answer.ok) { if (edited) tell(); else location.reload(); return; }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const now = page.getElementById("main");
    if (!now || strip(now) === strip(main())) return;
    if (edited) { tell(); return; }
    const open = opened(main()), focus = placeOf(document.activeElement);
    [...now.querySelectorAll("details")].forEach((one, at) => {
      const was = open.get(one.id || at);
      if (was !== undefined) one.open = was;
    });
    main().replaceWith(now);
    document.title = page.title;
    focus()?.focus({ preventScroll: true });
    news.textContent = `Updated: ${page.title}`;
  } catch { /* the server is away: the stream comes back with it */ } finally {
    setTimeout(() => {  // a slow page gets a quarter of the server at most
      busy = false;
      if (again) { again = false; refresh(); }
    }, 3 * (performance.now() - begun));
  }
}

function placeOf(one) {  // what finds an element again in the next page, by where it leads
  if (!main().contains(one)) return () => null;
  const kin = () => [...main().querySelectorAll(one.localName)].filter((other) => nameOf(other) === nameOf(one));
  const at = kin().indexOf(one);
  return () => kin()[at] ?? main();
}

function nameOf(one) {
  const words = ["id", "href", "aria-label"].map((name) => one.getAttribute(name));
  return [...words, one.parentNode.id, one.form?.action, one.form?.kind?.value].join(" ");
}

function strip(root) {  // folds that the reader opened are no news
  const copy = root.cloneNode(true);
  copy.querySelectorAll("details").forEach((one) => one.removeAttribute("open"));
  return copy.innerHTML;
}

function tell() {
  const link = document.createElement("a");
  link.href = location.href;
  link.textContent = "Something new was recorded. Reload";
  news.replaceChildren(link);
}

function listen() {
  if (document.hidden) { source?.close(); source = null; return; }  // browsers open six connections at most
  if (source || !isLive()) return;
  source = new EventSource("/view/events");
  source.onopen = source.onmessage = refresh;  // what was recorded before it was open brings no message
}

document.addEventListener("input", () => { edited = true; });
document.addEventListener("visibilitychange", listen);
listen();
