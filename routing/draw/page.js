"use strict";
(async () => {
  const byId = (id) => document.getElementById(id);
  const net = byId("net");
  const space = "http://www.w3.org/2000/svg";
  const NO_PORT = 255, ROWS = 200, LISTED = 40;

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  if (typeof DecompressionStream === "undefined") {
    byId("tables").textContent = "This browser is too old for the tables and the search. The picture is complete.";
    return;
  }
  const data = JSON.parse(new TextDecoder().decode(await unpack("data")));

  /* Tables: built when they are opened, a few hundred rows at a time. */

  function element(name, content, attributes = {}) {
    const made = document.createElement(name);
    if (content !== undefined) made.textContent = content;
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  }

  const rowOfSwitch = new Map((data.names || []).map((name, row) => [name, row]));

  function cellOf(value, column) {
    const cell = element("td");
    if (typeof value === "number") cell.className = "n";
    const text = value === null ? "-" : value === true ? "yes" : value === false ? "no" : String(value);
    if (net && rowOfSwitch.has(value) && /switch/i.test(column)) {
      const link = element("a", text, { href: "#s" + rowOfSwitch.get(value) });
      link.addEventListener("click", (event) => { event.preventDefault(); visit(rowOfSwitch.get(value), true); });
      cell.append(link);
    } else cell.textContent = text;
    return cell;
  }

  function compare(a, b) {
    if (a === null || b === null) return (a === null) - (b === null);
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), undefined, { numeric: true });
  }

  function fill(box, table) {
    const shown = { rows: table.rows, most: ROWS };
    const filter = element("input", undefined, { type: "search", class: "filter" });
    const label = element("label", "Only rows with ", { class: "filter" });
    label.append(filter);
    const made = element("table");
    made.append(element("caption", table.title));
    made.caption.style.textAlign = "left";
    const head = element("tr"), body = element("tbody"), more = element("button", "", { class: "more", type: "button" });
    const status = element("span", "", { role: "status" });
    table.columns.forEach((name, column) => {
      const cell = element("th", undefined, { scope: "col" });
      const button = element("button", name, { type: "button" });
      button.addEventListener("click", () => {
        const up = cell.getAttribute("aria-sort") !== "ascending";
        for (const other of head.children) other.removeAttribute("aria-sort");
        cell.setAttribute("aria-sort", up ? "ascending" : "descending");
        table.rows.sort((a, b) => (up ? 1 : -1) * compare(a[column], b[column]));
        select();
      });
      cell.append(button);
      head.append(cell);
    });
    function show() {
      const rows = shown.rows.slice(0, shown.most).map((row) => {
        const line = element("tr");
        line.append(...row.map((value, column) => cellOf(value, table.columns[column])));
        return line;
      });
      body.replaceChildren(...rows);
      const left = shown.rows.length - rows.length;
      more.hidden = left <= 0;
      more.textContent = `Show all ${shown.rows.length} rows`;
      status.textContent = ` ${shown.rows.length} of ${table.rows.length} rows`;
    }
    function select() {
      const words = filter.value.toLowerCase();
      shown.rows = words ? table.rows.filter((row) => row.some((value) => String(value).toLowerCase().includes(words))) : table.rows;
      shown.most = ROWS;
      show();
    }
    filter.addEventListener("input", select);
    more.addEventListener("click", () => { shown.most = Infinity; show(); });
    const thead = element("thead"), scroll = element("div", undefined, { class: "scroll", tabindex: "0" });
    thead.append(head);
    made.append(thead, body);
    scroll.append(made);
    box.append(label, status, scroll, more);
    show();
  }

  data.tables.forEach((table, number) => {
    const box = element("details");
    box.append(element("summary", `${table.title} (${table.rows.length})`));
    let filled = false;
    const open = () => { if (box.open && !filled) { filled = true; fill(box, table); } };
    box.addEventListener("toggle", open);
    byId("tables").append(box);
    if (number === 0 && table.rows.length <= ROWS) { box.open = true; open(); }
  });
  document.documentElement.dataset.ready = "yes";
  if (!net) return;

  /* Pan and zoom: by the view box of the picture. */

  const whole = net.getAttribute("viewBox").split(" ").map(Number);
  let view = [...whole];
  const draw = () => net.setAttribute("viewBox", view.map((value) => value.toFixed(1)).join(" "));
  function zoom(factor, x = view[0] + view[2] / 2, y = view[1] + view[3] / 2) {
    const wide = Math.min(Math.max(view[2] * factor, 60), whole[2] * 4);
    const by = wide / view[2];
    view = [x - (x - view[0]) * by, y - (y - view[1]) * by, wide, view[3] * by];
    draw();
  }
  function reset() { view = [...whole]; draw(); }
  function pointOf(event) {
    return new DOMPoint(event.clientX, event.clientY).matrixTransform(net.getScreenCTM().inverse());
  }
  net.addEventListener("wheel", (event) => {
    event.preventDefault();
    const point = pointOf(event);
    zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, point.x, point.y);
  }, { passive: false });
  let held = null;
  net.addEventListener("pointerdown", (event) => { held = pointOf(event); });
  net.addEventListener("pointermove", (event) => {
    if (!held || !event.buttons) return;
    const point = pointOf(event);
    view[0] += held.x - point.x;
    view[1] += held.y - point.y;
    draw();
  });
  addEventListener("pointerup", () => { held = null; });
  byId("in").addEventListener("click", () => zoom(1 / 1.5));
  byId("out").addEventListener("click", () => zoom(1.5));
  byId("whole").addEventListener("click", reset);

  /* Switches: one is in the order of the Tab key, the arrow keys lead to the others. */

  const circles = [...byId("switches").children];
  circles.forEach((circle, row) => circle.setAttribute("tabindex", row ? "-1" : "0"));
  let current = 0;
  const place = (row) => [+circles[row].getAttribute("cx"), +circles[row].getAttribute("cy")];
  function visit(row, scroll) {
    circles[current].setAttribute("tabindex", "-1");
    current = row;
    circles[row].setAttribute("tabindex", "0");
    const [x, y] = place(row);
    if (x < view[0] || x > view[0] + view[2] || y < view[1] || y > view[1] + view[3]) {
      view[0] = x - view[2] / 2;
      view[1] = y - view[3] / 2;
      draw();
    }
    circles[row].focus({ preventScroll: !scroll });
    if (scroll) net.scrollIntoView({ block: "nearest" });
  }
  function towards(dx, dy) {
    const [x, y] = place(current);
    let best = -1, least = Infinity;
    circles.forEach((_, row) => {
      const [u, v] = place(row);
      const ahead = (u - x) * dx + (v - y) * dy, aside = Math.abs((u - x) * dy) + Math.abs((v - y) * dx);
      if (row !== current && ahead > 0 && ahead + 3 * aside < least) { least = ahead + 3 * aside; best = row; }
    });
    if (best >= 0) visit(best);
  }
  const keys = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  net.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (keys[event.key]) towards(...keys[event.key]);
    else if (event.key === "Enter") { byId("to").value = data.names[current]; search(); }
    else if (event.key === "+") zoom(1 / 1.5);
    else if (event.key === "-") zoom(1.5);
    else if (event.key === "0") reset();
    else return;
    event.preventDefault();
  });
  circles.forEach((circle, row) => circle.addEventListener("click", () => {
    visit(row);
    byId("to").value = data.names[row];
    search();
  }));

  /* Search: a switch, CA, LID or GUID, and the paths to it. */

  const peers = new Map();
  for (const [a, p, b, q] of data.cables) { peers.set(a * 256 + p, b); peers.set(b * 256 + q, a); }
  const casAt = data.names.map(() => []);
  data.cas.forEach((ca, row) => { if (ca[4] >= 0) casAt[ca[4]].push(row); });
  const guids = data.tables.find((table) => table.title === "Switches").rows.map((row) => [row[1], row[0], row[2]]);
  const columnOf = new Map(data.lids.map((lid, column) => [lid, column]));
  let tables = null;
  const entry = (row, column) => tables[row * data.lids.length + column];

  function find(text) {
    const word = text.trim().toLowerCase();
    if (!word) return null;
    const lid = /^(?:lid *)?(\d+)$/.exec(word);
    const guid = guids.find((row) => row[0] === word || (lid && row[2] === +lid[1]));
    const name = guid ? guid[1].toLowerCase() : word;
    const tests = [(each) => each === name, (each) => each.startsWith(name), (each) => each.includes(name)];
    if (lid) {
      const row = data.cas.findIndex((ca) => ca[2] <= +lid[1] && +lid[1] < ca[2] + ca[3]);
      if (row >= 0) return { ca: row, at: data.cas[row][4], name: data.cas[row][0], lid: +lid[1] };
    }
    for (const test of tests) {
      const at = data.names.findIndex((each) => test(each.toLowerCase()));
      if (at >= 0) return { at, name: data.names[at] };
      const row = data.cas.findIndex((ca) => test(ca[0].toLowerCase()));
      if (row >= 0) return { ca: row, at: data.cas[row][4], name: data.cas[row][0], lid: data.cas[row][2] };
    }
    return null;
  }

  function columnFor(found) {
    if (found.lid !== undefined && columnOf.has(found.lid)) return columnOf.get(found.lid);
    for (const row of casAt[found.at]) if (columnOf.has(data.cas[row][2])) return columnOf.get(data.cas[row][2]);
    return -1;
  }

  function walk(start, column, goal) {
    const path = [start], ports = [];
    for (let here = start; here !== goal;) {
      const port = entry(here, column);
      const next = port === NO_PORT ? undefined : peers.get(here * 256 + port);
      if (next === undefined || path.length > 255) return { path, ports, ends: false };
      ports.push(port);
      path.push(next);
      here = next;
    }
    return { path, ports, ends: true };
  }

  const marks = document.createElementNS(space, "g");
  marks.id = "marks";
  net.insertBefore(marks, byId("switches"));
  function mark(name, attributes) {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    marks.append(made);
  }
  const line = (path) => "M" + path.map((row) => place(row).join(" ")).join("L");
  const ring = (row) => mark("circle", { cx: place(row)[0], cy: place(row)[1], r: 12 });

  function clear() {
    marks.replaceChildren();
    net.classList.remove("shown");
    byId("answer").textContent = "";
  }

  function inTree(found, column) {
    const hops = [];
    let failing = 0, lines = "";
    data.names.forEach((_, row) => {
      const { path, ends } = walk(row, column, found.at);
      if (!ends) { failing += 1; return; }
      hops[path.length - 1] = (hops[path.length - 1] || 0) + 1;
      if (path.length > 1) lines += line(path.slice(0, 2));
    });
    mark("path", { d: lines, class: "thin" });
    const counts = Array.from(hops, (count, number) => count ? `${count} in ${number}` : "").filter(Boolean).join(", ");
    return `Paths to it from the switches, by hops: ${counts}.` + (failing ? ` No path from ${failing} switches.` : "");
  }

  async function search() {
    clear();
    const text = byId("to").value, found = find(text), wanted = byId("from").value;
    const answer = byId("answer");
    if (!found) { answer.textContent = text.trim() ? `Nothing is called ${text.trim()}.` : ""; return; }
    const where = found.ca === undefined ? "" : found.at < 0 ? " is not at a switch" : ` at ${data.names[found.at]} port ${data.cas[found.ca][5]}, LID ${found.lid}`;
    const said = [`${found.name}${where}.`];
    if (found.at < 0) { answer.textContent = said[0]; return; }
    ring(found.at);
    net.classList.add("shown");
    const column = data.lids.length ? columnFor(found) : -1;
    if (column < 0) {
      const why = data.paths === "no tables" ? "The page has no tables, so no paths." : data.paths === "none" ? "The tables are too large for this page, so it has no paths (ibnue draw --size allows more)." : "The switch has no CA, and the page has only the paths to CAs.";
      answer.textContent = `${said[0]} ${why}`;
      return;
    }
    if (!tables) tables = await unpack("lft");
    if (data.paths === "switches") said.push(`The page has the paths to one CA of each switch: LID ${data.lids[column]}.`);
    if (!wanted.trim()) said.push(inTree(found, column));
    else {
      const start = find(wanted);
      if (!start || start.at < 0) said.push(`Nothing is called ${wanted.trim()}.`);
      else {
        const { path, ports, ends } = walk(start.at, column, found.at);
        mark("path", { d: line(path) });
        ring(start.at);
        const steps = path.map((row, number) => data.names[row] + (number < ports.length ? ` port ${ports[number]}` : ""));
        const listed = steps.length > LISTED ? [...steps.slice(0, LISTED), "..."] : steps;
        said.push(ends ? `${path.length - 1} ${path.length === 2 ? "hop" : "hops"}: ${listed.join(" → ")}` : `The path ends without arriving: ${listed.join(" → ")}`);
      }
    }
    answer.textContent = said.join("\n");
  }
  byId("search").addEventListener("submit", (event) => { event.preventDefault(); search(); });
  byId("search").addEventListener("reset", () => { clear(); reset(); });
  function suggest(event) {
    const word = event.target.value.toLowerCase(), found = [];
    for (const name of [...data.names, ...data.cas.map((ca) => ca[0])]) {
      if (found.length < 12 && name.toLowerCase().includes(word) && !found.includes(name)) found.push(name);
    }
    byId("near").replaceChildren(...found.map((name) => element("option", undefined, { value: name })));
  }
  byId("to").addEventListener("input", suggest);
  byId("from").addEventListener("input", suggest);
  if (data.loop.length) byId("answer").textContent = data.loop.join("\n");
})();
