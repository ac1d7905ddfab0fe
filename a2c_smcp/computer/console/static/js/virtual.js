// A long list: only the rows in sight are in the document. Rows may have any height.
// The first row, the last row and the row with the focus are always there, so that Tab enters the list from both sides.
import { html, useEffect, useLayoutEffect, useRedraw, useRef } from "./html.js";

/** How many pixels beyond the window rows are drawn, and how many rows at the most. */
const DRAWN = { beyond: 400, rows: 300 };

const lists = new Set();

/** Something moved: every list looks which of its rows are in sight now. */
function look() {
  for (const each of lists) each();
}

document.addEventListener("scroll", look, { capture: true, passive: true });
window.addEventListener("resize", look);

/**
 * `row(item, attributes)` draws an item as an `<li key=${…} ...${attributes}>`. `keyOf` gives its name, and `estimate`
 * its height in pixels until it was drawn once.
 */
export function VirtualList({ items, row, keyOf, estimate, class: name }) {
  const element = useRef(null);
  const heights = useRef(new Map());
  const focused = useRef(null);
  const range = useRef([0, 0]);
  const top = useRef(null);
  const gap = useRef(0);
  const draw = useRedraw();
  const tops = topsOf(items, keyOf, heights.current, estimate, gap.current);
  // The same rows stay drawn when others come before them: only a drawn row can be held still.
  range.current = shifted(range.current, indexOf(items, keyOf, top.current));
  top.current = keyAt(items, keyOf, range.current[0]);
  const latest = useRef();
  latest.current = () => {
    const next = inSight(element.current, tops);
    if (next[0] === range.current[0] && next[1] === range.current[1]) return;
    range.current = next;
    top.current = keyAt(items, keyOf, next[0]);
    draw();
  };
  useSight(element, latest);
  const held = rowAtEdge(element.current);
  useLayoutEffect(() => {
    hold(held);
    look();
  });
  useHeights(element, heights, draw);
  useLayoutEffect(() => {
    gap.current = parseFloat(getComputedStyle(element.current).rowGap) || 0;
    forgetHeights(heights.current, items, keyOf);
  }, [items]);
  const shown = drawnRows(items.length, range.current, indexOf(items, keyOf, focused.current));
  const focus = (event) => {
    focused.current = event.type === "focusin" ? event.target.closest("li[data-key]")?.dataset.key : null;
  };
  return html`<ul ref=${element} class=${name} onFocusIn=${focus} onFocusOut=${focus}>
    ${shown.map((at, place) => {
      // The rows before this one that are not drawn leave their space.
      const room = place ? tops[at] - tops[shown[place - 1] + 1] : 0;
      const attributes = {
        "data-key": keyOf(items[at]),
        "aria-setsize": items.length,
        "aria-posinset": at + 1,
        style: { marginTop: room > 0 ? `${room}px` : "" },
      };
      return row(items[at], attributes);
    })}
  </ul>`;
}

/** The top of each row, and the end of the last. */
function topsOf(items, keyOf, heights, estimate, gap) {
  const tops = new Float64Array(items.length + 1);
  for (let at = 0; at < items.length; at += 1) tops[at + 1] = tops[at] + (heights.get(keyOf(items[at])) ?? estimate) + gap;
  return tops;
}

/** The first row that is in sight, and the one after the last. */
function inSight(element, tops) {
  const box = element?.getBoundingClientRect();
  if (!box?.width) return [0, 0]; // it is not shown at all
  const first = rowAt(tops, -box.top - DRAWN.beyond);
  const last = rowAt(tops, window.innerHeight - box.top + DRAWN.beyond);
  return [first, Math.min(last + 1, first + DRAWN.rows, tops.length - 1)];
}

/** The row at this height of the list. */
function rowAt(tops, y) {
  let low = 0;
  let high = tops.length - 2;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= y) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

function drawnRows(count, [first, end], focused) {
  const drawn = new Set();
  for (let at = Math.min(first, count); at < Math.min(end, count); at += 1) drawn.add(at);
  for (const at of [0, count - 1, focused]) if (at >= 0 && at < count) drawn.add(at);
  return [...drawn].sort((one, other) => one - other);
}

function shifted([first, end], now) {
  return now < 0 ? [first, end] : [now, end + now - first];
}

function keyAt(items, keyOf, at) {
  return at < items.length ? keyOf(items[at]) : null;
}

function indexOf(items, keyOf, key) {
  return key ? items.findIndex((item) => keyOf(item) === key) : -1;
}

/** Looks again whenever the place of the list may have changed. */
function useSight(element, latest) {
  useLayoutEffect(() => {
    const own = () => latest.current();
    lists.add(own);
    // In the next frame: an observer must not change at once what it observes.
    const around = new ResizeObserver(() => requestAnimationFrame(look));
    for (const each of scrollerOf(element.current).children) around.observe(each);
    return () => {
      lists.delete(own);
      around.disconnect();
    };
  }, []);
}

/** The row at the upper edge and its place, before the list is drawn again; null if the list begins below the edge. */
function rowAtEdge(list) {
  if (!list) return null;
  const scroller = scrollerOf(list);
  const edge = Math.max(0, scroller.getBoundingClientRect().top);
  if (list.getBoundingClientRect().top >= edge) return null;
  const row = [...list.children].find((each) => each.getBoundingClientRect().bottom > edge);
  const y = row?.getBoundingClientRect().top;
  return y < window.innerHeight ? { row, scroller, y } : null;
}

/** Scrolls by as much as that row has moved. The browser itself does so when other parts of the page move. */
function hold(held) {
  if (!held?.row.isConnected) return;
  const moved = held.row.getBoundingClientRect().top - held.y;
  if (Math.abs(moved) >= 1) held.scroller.scrollTop += moved;
}

function scrollerOf(element) {
  for (let each = element.parentElement; each; each = each.parentElement) {
    if (/auto|scroll/.test(getComputedStyle(each).overflowY)) return each;
  }
  return document.scrollingElement;
}

/** Measures the rows that are drawn. */
function useHeights(element, heights, draw) {
  const observer = useRef(null);
  const observed = useRef(new Set());
  useEffect(() => {
    observer.current = new ResizeObserver((entries) => {
      let changed = false;
      for (const { target, borderBoxSize } of entries) {
        const height = borderBoxSize[0].blockSize;
        const key = target.dataset.key;
        // A row that is gone, or in a part that is not shown, has no height.
        if (!height || heights.current.get(key) === height) continue;
        heights.current.set(key, height);
        changed = true;
      }
      if (changed) requestAnimationFrame(() => draw());
    });
    return () => observer.current.disconnect();
  }, []);
  useEffect(() => {
    const there = new Set(element.current.children);
    for (const each of observed.current) if (!there.has(each)) observer.current.unobserve(each);
    for (const each of there) if (!observed.current.has(each)) observer.current.observe(each);
    observed.current = there;
  });
}

function forgetHeights(heights, items, keyOf) {
  if (heights.size <= 2 * items.length + 100) return;
  const there = new Set(items.map(keyOf));
  for (const key of heights.keys()) if (!there.has(key)) heights.delete(key);
}
