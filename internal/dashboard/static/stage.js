// Draws a creative in a stage: see stage.go. The document has no origin and reaches
// nothing; what is shown is in its data block, or comes from the page around it.
(() => {
  const shapes = [...document.querySelectorAll('figure')];
  const magazines = [...document.querySelectorAll('deckle-magazine')];

  // A shape that is wider than there is room is shown smaller, as a whole.
  const fit = () => {
    for (const shape of shapes) {
      const slot = shape.querySelector('.fit');
      const scale = Math.min(1, shape.clientWidth / slot.dataset.width);
      slot.style.width = `${slot.dataset.width}px`;
      slot.style.height = `${slot.dataset.height}px`;
      slot.style.zoom = scale;
      shape.querySelector('.scale').textContent = scale < 0.995 ? `, at ${Math.round(scale * 100)} %` : '';
    }
  };

  // Another page than the cover is shown as readers meet it who have folded its corner.
  const show = (creative, page) => {
    for (const magazine of magazines) {
      if (page > 0) magazine.dataset.pinnedPage = page;
      else delete magazine.dataset.pinnedPage;
      magazine.creative = creative;
    }
  };

  addEventListener('message', ({source, data}) => {
    if (source === parent && source !== window && data?.deckleCreative) show(data.deckleCreative, data.page);
  });
  addEventListener('resize', fit);
  fit();
  show(JSON.parse(document.querySelector('#creative').textContent), 0);
  if (document.body.dataset.open) magazines[0].expand(0);
})();
