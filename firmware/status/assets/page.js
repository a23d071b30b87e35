// Freshens a page while somebody looks at it. Without this file everything works, a page is then read anew by the browser.
(() => {
  'use strict';

  document.addEventListener('submit', (e) => {
    const ask = e.target.dataset.ask;
    if (ask && !window.confirm(ask)) e.preventDefault();
  });

  // What was done is said once: not again when the page is loaded anew.
  if (location.search.includes('done=')) history.replaceState(null, '', location.pathname);

  if (!('live' in document.body.dataset)) return;
  const log = document.getElementById('log');
  const gone = document.getElementById('gone');
  let source = null, poll = 0, busy = false, again = false;

  // A part that a person works in, or has written something into, is left as it is.
  const edited = (field) => field.matches('select')
    ? field.selectedIndex !== Math.max(0, [...field.options].findIndex((o) => o.defaultSelected))
    : field.value !== field.defaultValue || field.checked !== field.defaultChecked;
  const inUse = (part) => part.contains(document.activeElement) && document.activeElement.matches('input, select') ||
    [...part.querySelectorAll('input, select')].some(edited);

  const swap = (fresh) => {
    for (const part of document.querySelectorAll('[data-part]')) {
      const other = fresh.getElementById(part.id);
      if (!other || inUse(part)) continue;
      if (part.innerHTML === other.innerHTML) continue;
      const focused = part.contains(document.activeElement) ? document.activeElement : null;
      const href = focused && focused.getAttribute('href');
      const id = focused && focused.id;
      const left = part.querySelector('.scroll') ? part.querySelector('.scroll').scrollLeft : 0;
      part.replaceChildren(...document.adoptNode(other).childNodes); // the part itself stays: screen readers listen to it
      if (part.querySelector('.scroll')) part.querySelector('.scroll').scrollLeft = left;
      if (focused) {
        const back = (id && document.getElementById(id)) || (href && part.querySelector(`a[href="${CSS.escape(href)}"]`));
        if (back) back.focus({ preventScroll: true });
      }
    }
  };

  const refresh = async () => {
    if (log) return;
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(location.pathname + location.search, { headers: { Accept: 'text/html' }, signal: AbortSignal.timeout(10000) });
      if (answer.ok) swap(new DOMParser().parseFromString(await answer.text(), 'text/html'));
      gone.hidden = answer.ok;
    } catch {
      gone.hidden = false;
    }
    busy = false;
    if (again) { again = false; refresh(); }
  };

  const append = (lines) => {
    const end = log.scrollTop + log.clientHeight >= log.scrollHeight - 8;
    for (const line of lines) {
      const p = document.createElement('p');
      p.className = 'l-' + line.level;
      p.textContent = line.time.slice(11, 19) + ' ' + line.level + ' ' + line.text;
      log.append(p);
      log.dataset.after = line.seq;
    }
    while (log.childElementCount > 500) log.firstElementChild.remove();
    if (end) log.scrollTop = log.scrollHeight;
  };

  const close = () => {
    if (source) source.close();
    source = null;
    clearInterval(poll);
    poll = 0;
  };

  const open = () => {
    close();
    source = new EventSource(log ? '/events?log=' + log.dataset.after : '/events');
    source.addEventListener('change', () => { gone.hidden = true; refresh(); });
    source.addEventListener('log', (e) => append(JSON.parse(e.data)));
    source.addEventListener('error', () => {
      gone.hidden = false;
      if (source && source.readyState === EventSource.CLOSED) { // refused: there are too many
        close();
        poll = setInterval(refresh, 30000);
        refresh();
      }
    });
  };

  document.addEventListener('visibilitychange', () => document.hidden ? close() : open());
  window.addEventListener('pagehide', close);
  window.addEventListener('pageshow', (e) => { if (e.persisted) open(); });
  if (log) log.scrollTop = log.scrollHeight;
  if (!document.hidden) open();
})();
