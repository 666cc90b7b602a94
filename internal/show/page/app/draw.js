// Keeps the charts on the page in step with filter, theme and width.

const probe = document.createElement('span');

// resolved is a colour of CSS in the present theme; colour that of a variable of the style sheet.
const resolved = value => {
  probe.style.color = value;
  return getComputedStyle(probe).color;
};
const colour = name => resolved(`var(${name})`);

const currentLook = () => {
  document.body.append(probe);
  const look = {
    bg: colour('--bg'), panel: colour('--panel'), fg: colour('--fg'), soft: colour('--soft'), line: colour('--line'),
    filler: 'rgba(128,128,128,.25)', font: getComputedStyle(document.body).fontFamily,
    series: data.series.map(resolved), amounts: data.amounts, ratios: data.ratios,
    narrow: document.documentElement.clientWidth < 640,
  };
  probe.remove();
  return look;
};

// visible is the part of a chart that a filter lets through.
const visible = (chart, shown) => {
  if (chart.shape === 'curve') return { chart, items: chart.items };
  if (!chart.columns) {
    const items = chart.items.filter(item => shown(item));
    return { chart: { ...chart, items }, items };
  }
  const has = chart.columns.map((mac, k) => chart.items.some(item => item.points[k] && shown({ cipher: item.cipher, mac })));
  const pick = list => list.filter((_, k) => has[k]);
  const items = chart.items.map(item => ({
    ...item, points: pick(item.points.map((p, k) => shown({ cipher: item.cipher, mac: chart.columns[k] }) ? p : null)),
  })).filter(item => item.points.some(p => p));
  return { chart: { ...chart, series: pick(chart.series), items }, items };
};

const drawn = new Map(); // element -> ECharts instance

// paint draws rows of a chart into an element.
const paint = (element, chart, items, look) => {
  element.style.height = heightOf(chart, items, look) + 'px';
  let instance = drawn.get(element);
  if (!instance) {
    element.replaceChildren();
    instance = echarts.init(element, null, { renderer: 'svg' });
    drawn.set(element, instance);
  }
  instance.resize();
  instance.setOption(shapes[chart.shape](chart, items, look), true);
};

const drawChart = (data, shown, look) => {
  const element = document.getElementById(data.id);
  const { chart, items } = visible({ ...data, items: data.items.map(item => ({ ...item, mark: item.mark || '' })) }, shown);
  element.closest('figure').hidden = items.length === 0;
  if (items.length === 0) return;
  paint(element, chart, look.paper ? items.slice(0, rowsOnPaper) : items, look);
  if (look.paper) addSheets(element, chart, items, look);
};

// Paper does not scroll: rows beyond the first sheet are drawn below it, sheet
// by sheet, until removeSheets.
const rowsOnPaper = 40;
const sheets = [];

const addSheets = (element, chart, items, look) => {
  for (let from = rowsOnPaper; from < items.length; from += rowsOnPaper) {
    const rows = items.slice(from, from + rowsOnPaper);
    const sheet = document.createElement('div'), note = document.createElement('p'), picture = document.createElement('div');
    sheet.className = 'sheet';
    note.className = 'note';
    note.textContent = `Rows ${from + 1} to ${from + rows.length} of ${items.length}`;
    picture.className = element.className;
    sheet.append(note, picture);
    element.parentElement.append(sheet);
    paint(picture, chart, rows, look);
    sheets.push({ sheet, picture });
  }
};

const removeSheets = () => {
  for (const { sheet, picture } of sheets.splice(0)) {
    drawn.get(picture).dispose();
    drawn.delete(picture);
    sheet.remove();
  }
};

// drawAll draws one chart per turn, so that the page answers in between.
let turn = 0;
const drawAll = (charts, shown) => {
  const mine = ++turn, look = currentLook(), queue = [...charts];
  const next = () => {
    if (mine !== turn) return;
    const data = queue.shift();
    if (!data) { document.documentElement.dataset.drawn = String(mine); return; }
    drawChart(data, shown, look);
    setTimeout(next);
  };
  next();
};
