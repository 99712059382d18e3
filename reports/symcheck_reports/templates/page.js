/* Column headings of sortable tables and legends of curves become buttons; everything else works without this script. */
const numeric = (text) => {
/* The number that a cell begins with: "1,000", "> 4,000" (just above), "2.3e+13 above", "∞"; what is missing counts as least. */
const found = /^([<>]?) ?([-−]?)(∞|inf|Infinity|[\d,]*\.?\d+(?:e[-+]?\d+)?)/.exec(text);
if (!found) return Number.NEGATIVE_INFINITY;
const size = /^\D/.test(found[3]) && !found[3].startsWith(".") ? Number.MAX_VALUE : Number(found[3].replaceAll(",", ""));
const beyond = found[1] === ">" ? 1 : found[1] === "<" ? -1 : 0;
return (found[2] ? -size : size) * (1 + beyond * 1e-9) + beyond * 1e-9;
};
document.querySelectorAll("table.sortable").forEach((table) => {
const body = table.tBodies[0];
table.querySelectorAll("thead th").forEach((th, column) => {
const button = document.createElement("button");
button.type = "button";
button.title = "Sort by this column";
button.append(...th.childNodes);
th.append(button);
button.addEventListener("click", () => {
const up = th.getAttribute("aria-sort") !== "ascending";
table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
th.setAttribute("aria-sort", up ? "ascending" : "descending");
const key = (row) => row.cells[column].dataset.k ?? row.cells[column].textContent.trim();
const compare = th.classList.contains("num")
? (a, b) => { const x = numeric(key(a)), y = numeric(key(b)); return x < y ? -1 : x > y ? 1 : 0; }
: (a, b) => key(a).localeCompare(key(b), "en", { numeric: true });
body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(a, b)));
});
});
});
document.querySelectorAll("ul.legend[data-hides]").forEach((legend) => {
legend.querySelectorAll("li").forEach((item) => {
const button = document.createElement("button");
button.type = "button";
button.title = "Show or hide this curve";
button.setAttribute("aria-pressed", "true");
button.append(...item.childNodes);
item.append(button);
button.addEventListener("click", () => {
const shown = button.getAttribute("aria-pressed") !== "true";
button.setAttribute("aria-pressed", String(shown));
const parts = legend.parentElement.querySelectorAll(`svg [data-curve="${item.dataset.curve}"]`);
parts.forEach((part) => part.classList.toggle("hidden", !shown));
});
});
});
