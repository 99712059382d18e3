/* Column headings of sortable tables become buttons; everything else works without this script. */
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
const compare = (a, b) => {
const x = key(a), y = key(b), n = Number(x), m = Number(y);
return (x !== "" && y !== "" && !Number.isNaN(n) && !Number.isNaN(m)) ? n - m : x.localeCompare(y);
};
body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(a, b)));
});
});
});
