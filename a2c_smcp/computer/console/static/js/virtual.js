// A long list of which only the rows in sight are in the document, whatever their heights are.
// Its first and its last row are always there, so that Tab enters it from both sides; so is the row that has the focus.
import { html, useEffect, useLayoutEffect, useRedraw, useRef } from "./html.js";

/** How far beyond the window rows are drawn, in pixels. */
const BEYOND = 400;
/** No more rows than this are drawn, however low they are. */
const MOST_ROWS = 300;

const lists = new Set();

/** Something moved: every list looks again which of its rows are in sight. */
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
  // The same rows stay drawn when others come before them: only what is there can be held still.
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
      // The rows that are left out before this one leave their room behind.
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
  const first = rowAt(tops, -box.top - BEYOND);
  const last = rowAt(tops, window.innerHeight - box.top + BEYOND);
  return [first, Math.min(last + 1, first + MOST_ROWS, tops.length - 1)];
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
    // In the next frame: what an observer changes at once, it would have to observe at once.
    const around = new ResizeObserver(() => requestAnimationFrame(look));
    for (const each of scrollerOf(element.current).children) around.observe(each);
    return () => {
      lists.delete(own);
      around.disconnect();
    };
  }, []);
}

/** Where the row at the upper edge is before the list is drawn again, if the list begins above the edge. */
function rowAtEdge(list) {
  if (!list) return null;
  const scroller = scrollerOf(list);
  const edge = Math.max(0, scroller.getBoundingClientRect().top);
  if (list.getBoundingClientRect().top >= edge) return null;
  const row = [...list.children].find((each) => each.getBoundingClientRect().bottom > edge);
  const y = row?.getBoundingClientRect().top;
  return y < window.innerHeight ? { row, scroller, y } : null;
}

/** Scrolls by as much as that row was moved. What other parts of the page move, the browser itself makes up for. */
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
