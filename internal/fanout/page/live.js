(() => {
'use strict';
const live = document.getElementById('live');
let events;
const say = text => { if (live.textContent !== text) live.textContent = text; };
const show = (part, text) => {
  const selection = getSelection();
  if (!selection.isCollapsed && part.contains(selection.anchorNode)) { // somebody copies
    clearTimeout(part.later);
    part.later = setTimeout(show, 1000, part, text);
    return;
  }
  const next = document.createElement('template'), focus = part.contains(document.activeElement) ? document.activeElement : null;
  next.innerHTML = text;
  for (const old of part.querySelectorAll('details[id]')) {
    const same = next.content.getElementById(old.id);
    if (same) same.open = old.open;
  }
  const at = focus && [...part.querySelectorAll('a, summary, [tabindex]')].indexOf(focus);
  part.replaceChildren(next.content);
  if (focus) (focus.id && document.getElementById(focus.id) || part.querySelectorAll('a, summary, [tabindex]')[at])?.focus({ preventScroll: true });
};
const follow = () => { // a browser has few connections for all of its tabs
  events?.close();
  if (document.hidden) return;
  events = new EventSource(document.body.dataset.events);
  for (const part of document.querySelectorAll('[data-part]')) events.addEventListener(part.id, e => show(part, e.data));
  events.onopen = () => say('live');
  events.onerror = () => say('not connected: these numbers may be old');
};
document.addEventListener('visibilitychange', follow);
follow();
})();
