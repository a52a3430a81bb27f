for (const maps of document.querySelectorAll(".maps")) {
  const controls = maps.querySelector(".controls");
  if (!controls) continue;
  const slider = controls.querySelector("input");
  const select = controls.querySelector("select");
  const choose = (name, chosen) => {
    for (const one of maps.querySelectorAll(`[data-${name}]`))
      one.classList.toggle("off", one.dataset[name] !== chosen);
  };
  const update = () => {
    if (select) choose("variable", select.value);
    if (!slider) return;
    choose("time", slider.value);
    const chosen = maps.querySelector(".state [data-time]:not(.off)");
    slider.setAttribute("aria-valuetext", chosen.textContent);
  };
  controls.addEventListener("input", update);
  controls.hidden = false;
  update();
}
