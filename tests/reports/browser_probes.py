"""What is asked of an open page; each probe is an expression whose value lists the faults that it finds, best none."""

from __future__ import annotations

# Whatever reaches beyond the column of text, unless it lies in a box that scrolls on its own. Half a pixel is rounding.
STICKS_OUT = """(() => {
  const found = [];
  for (const column of document.querySelectorAll("header.top, main, footer")) {
    const style = getComputedStyle(column), box = column.getBoundingClientRect();
    const left = box.left + parseFloat(style.paddingLeft) - 0.5;
    const right = box.right - parseFloat(style.paddingRight) + 0.5;
    for (const element of column.querySelectorAll("*")) {
      if (element.closest("svg") !== null && element.tagName !== "svg") continue;
      const head = element.closest("thead");
      if (head !== null && getComputedStyle(head).position === "absolute") continue;
      const scroller = element.parentElement.closest(".scroll");
      if (scroller !== null && getComputedStyle(scroller).overflowX === "auto") continue;
      const own = element.getBoundingClientRect();
      if (own.width > 0 && (own.left < left || own.right > right)) found.push(element.outerHTML.slice(0, 120));
    }
  }
  return found;
})()"""

# Boxes that scroll sideways and that a keyboard cannot reach, or that have no name.
UNREACHABLE_BOXES = """[...document.querySelectorAll("main *")]
  .filter((e) => ["auto", "scroll"].includes(getComputedStyle(e).overflowX) && e.scrollWidth > e.clientWidth + 1)
  .filter((e) => e.tabIndex !== 0 || !e.getAttribute("aria-label"))
  .map((e) => e.outerHTML.slice(0, 120))"""

# Short words that are broken in their middle; "equivaria|nt" is one.
BROKEN_WORDS = """(() => {
  const found = [], range = document.createRange();
  for (const cell of document.querySelectorAll("main td, main th, main dt, main dd, main li, main p, h1, h2, h3")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      for (const word of node.data.matchAll(/(?<!\\S)[A-Za-z]{2,14}(?=[,.;:]?(?:\\s|\\[|$))/g)) {
        range.setStart(node, word.index);
        range.setEnd(node, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size > 1) found.push(word[0]);
      }
    }
  }
  return found;
})()"""

# Text in figures that is too near in brightness to the paper that its outline is drawn in (axe reads no SVG text);
# 4.5 is WCAG's AA for text.
FAINT_FIGURE_TEXT = """(() => {
  const light = (colour) => {
    const [r, g, b] = (colour.match(/[\\d.]+/g) ?? [0, 0, 0]).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const seen = [...document.querySelectorAll("svg text")].filter((text) => text.getBoundingClientRect().width > 0);
  return seen.map((text) => {
    const style = getComputedStyle(text);
    const both = [light(style.fill), light(style.stroke)].sort((a, b) => b - a);
    return [text.textContent, (both[0] + 0.05) / (both[1] + 0.05)];
  }).filter(([text, contrast]) => contrast < 4.5);
})()"""

# Links that lead nowhere on the page; addresses of other files are returned for the caller to look for.
DEAD_ANCHORS = """[...document.querySelectorAll("a[href^='#']")].map((a) => a.getAttribute("href").slice(1))
  .filter((id) => document.getElementById(id) === null)"""
FILE_LINKS = (
    """[...document.querySelectorAll("a[href]")].map((a) => a.getAttribute("href")).filter((h) => !h.startsWith("#"))"""
)

# Labels of figures smaller than nine pixels on the screen.
SMALL_FIGURE_TEXT = """[...document.querySelectorAll("svg text")].filter((t) => t.getBoundingClientRect().width > 0)
  .map((t) => {
    const svg = t.closest("svg"), wide = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    return [t.textContent, parseFloat(getComputedStyle(t).fontSize) * wide];
  }).filter(([text, size]) => size < 9)"""

# Figures without a name, or whose name or description is not on the page.
UNNAMED_FIGURES = """[...document.querySelectorAll("main svg[role=img], main img")].filter((figure) =>
  figure.tagName === "IMG" ? !figure.alt
    : !figure.getAttribute("aria-labelledby").split(" ").every((id) => document.getElementById(id)?.textContent))
  .map((figure) => figure.outerHTML.slice(0, 120))"""

# Labels of a figure that lie on each other, or reach out of it; two lines may touch.
COLLIDING_FIGURE_TEXT = """[...document.querySelectorAll("svg")].flatMap((svg) => {
  const frame = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()])
    .filter(([text, box]) => box.width > 0);
  const out = texts.filter(([text, box]) => box.left < frame.left - 1 || box.right > frame.right + 1);
  const on = texts.flatMap(([text, a], i) => texts.slice(i + 1).filter(([other, b]) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.4 * Math.min(a.height, b.height)
  ).map(([other]) => [text, other]));
  return [...out.map(([text]) => [text, "out of the figure"]), ...on];
})"""
