// Measures the report in each frame and writes lines of "name value" into #result.
addEventListener("load", () => {
  const lines = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    const root = page.documentElement;
    const width = root.clientWidth;
    const problem = (text) => lines.push("problem " + text.replace(/\s+/g, " "));
    lines.push("width " + parseInt(frame.style.width));

    if (root.scrollWidth > width) problem(`the page is ${root.scrollWidth} px wide, not ${width}`);
    const shown = (selector) =>
      [...page.querySelectorAll(selector)].filter((e) => e.getClientRects().length > 0);
    const inside = (element, name) => {
      const box = element.getBoundingClientRect();
      if (box.width < 1 || box.height < 1) problem(`${name} has no size`);
      if (box.left < -0.5 || box.right > width + 0.5)
        problem(`${name} reaches from ${box.left} to ${box.right}`);
      return box;
    };

    const charts = shown("svg[role=img]");
    let marks = 0;
    for (const chart of charts) {
      const name = "chart " + chart.getAttribute("aria-label");
      const box = inside(chart, name);
      if (box.height < 100) problem(`${name} is ${box.height} px high`);
      const drawn = [...chart.querySelectorAll(":scope > svg path")];
      const usable = drawn.filter((p) => /^M[-\d]/.test(p.getAttribute("d")));
      if (usable.length === 0 || usable.length < drawn.length) problem(`${name} lacks path data`);
      if (chart.outerHTML.includes("NaN")) problem(`${name} has NaN in it`);
      marks += usable.length;

      const texts = [...chart.querySelectorAll("text")];
      const boxes = texts.map((t) => t.getBoundingClientRect());
      texts.forEach((text, i) => {
        const a = boxes[i];
        const cut = Math.max(
          box.left - a.left, a.right - box.right, box.top - a.top, a.bottom - box.bottom);
        if (cut > 1)
          problem(`${name} cuts off "${text.textContent}"`);
        for (let k = i + 1; k < texts.length; k++) {
          const b = boxes[k];
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          // Boxes of text include the space between lines, hence the pixels of tolerance.
          if (across > 0 && down > 3)
            problem(`${name}: "${text.textContent}" overlaps "${texts[k].textContent}"`);
        }
      });
    }
    const tables = shown("table");
    for (const table of tables) {
      const box = table.closest(".scroll");
      if (!box) problem("a table has no box to scroll in");
      else inside(box, "table " + box.getAttribute("aria-label"));
    }
    for (const image of shown("img"))
      if (image.naturalWidth === 0) problem("an image does not load");
    lines.push("charts " + charts.length, "marks " + marks, "tables " + tables.length);
  }
  document.querySelectorAll("iframe").forEach((frame) => frame.remove());
  document.getElementById("result").textContent = lines.join("\n");
});
