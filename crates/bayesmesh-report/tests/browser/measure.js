// Measures the report in each frame and writes lines of "name value" into #result.
addEventListener("load", () => {
  const lines = [];
  for (const frame of document.querySelectorAll("iframe")) {
    const page = frame.contentDocument;
    const root = page.documentElement;
    act(page);
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
    const rgb = (color) => color.match(/[\d.]+/g).slice(0, 3).map(Number);
    const luminance = (color) => {
      const linear = rgb(color).map((c) => c / 255).map(
        (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
      return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
    };
    const color = (element, name) => frame.contentWindow.getComputedStyle(element)[name];
    const paper = luminance(color(page.body, "backgroundColor"));
    for (const panel of shown(".maps .panel, .maps .head")) {
      const texts = [...panel.querySelectorAll("strong, span, label, select")].filter(
        (e) => e.getClientRects().length > 0 && (e.tagName === "SELECT" || !e.children.length));
      texts.forEach((text, i) => {
        const a = inside(text, `text "${text.textContent}" of a map`);
        const ink = luminance(color(text, "color"));
        const contrast = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
        if (contrast < 4.5) problem(`"${text.textContent}" of a map has a contrast of ${contrast}`);
        for (const other of texts.slice(i + 1)) {
          const b = other.getBoundingClientRect();
          const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
          const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
          if (across > 1 && down > 3)
            problem(`"${text.textContent}" of a map overlaps "${other.textContent}"`);
        }
      });
    }
    for (const map of shown(".map")) {
      const name = map.getAttribute("aria-label");
      const box = inside(map, "map " + name);
      if (Math.abs(box.width / box.height - 2) > 0.02) problem(`map ${name} is not 2:1`);
      const pictures = [...map.querySelectorAll("img")].filter((e) => e.getClientRects().length);
      if (pictures.length > 1) problem(`map ${name} has ${pictures.length} pictures at once`);
      // Any number that differs where the pictures do.
      let hash = 0;
      for (const picture of pictures) {
        const frame = picture.getBoundingClientRect();
        if (frame.left > box.left + 0.5 || frame.right < box.right - 0.5)
          problem(`map ${name} is not filled`);
        for (const c of picture.src) hash = (31 * hash + c.charCodeAt(0)) >>> 0;
      }
      const coast = map.querySelector("use.coast");
      if (coast && coast.getBBox().width < 1) problem(`map ${name} has no coast`);
      lines.push(`map ${name} ${hash}`);
    }
    for (const state of shown(".maps .state"))
      lines.push("state " + state.innerText.replace(/\s+/g, " "));
    lines.push("controls " + shown(".maps input, .maps select").length);
    lines.push("charts " + charts.length, "marks " + marks, "tables " + tables.length);
  }
  document.querySelectorAll("iframe").forEach((frame) => frame.remove());
  document.getElementById("result").textContent = lines.join("\n");
});
