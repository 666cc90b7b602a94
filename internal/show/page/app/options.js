// The drawing instructions for each shape of chart. Pure: data and colours in,
// an ECharts option out. Texts are never parsed as HTML: tooltips are drawn as
// SVG text.

// figure prints three significant digits, as every format of a report does.
const figure = v => {
  const a = Math.abs(v);
  return v.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : 3);
};

const rowsShown = 30; // more than that scroll

// scrolls: are there rows out of sight? Not on paper: nobody can scroll it.
const scrolls = (items, look) => !look.paper && items.length > rowsShown;

const interval = p => p && p.length > 2 ? ` (${figure(p[1])} to ${figure(p[2])})` : '';
const sayPoint = (p, unit) => !p ? 'unknown' : `${figure(p[0])} ${unit}${interval(p)}${p[3] ? ', predicted' : ''}`;

// named is the text of an item on its axis.
const named = item => item.mark ? `${item.label}  (${item.mark})` : item.label;

const clip = (text, width) => text.length > width ? text.slice(0, width - 1) + '…' : text;

// base is what all charts share.
const base = (chart, look) => ({
  animation: false,
  aria: { enabled: true, label: { description: `${chart.title}. The table below holds its numbers.` } },
  backgroundColor: 'transparent',
  textStyle: { color: look.fg, fontFamily: look.font, fontSize: 12 },
  tooltip: {
    renderMode: 'richText', confine: true, backgroundColor: look.panel, borderColor: look.line,
    textStyle: { color: look.fg, fontSize: 12 },
  },
  toolbox: { show: !look.paper, right: 4, top: 0, iconStyle: { borderColor: look.soft }, feature: { saveAsImage: { type: 'svg', title: 'Save as SVG', name: chart.name, backgroundColor: look.bg } } },
});

const valueAxis = (chart, look, more) => ({
  type: 'value', name: chart.unit, nameLocation: 'middle', nameGap: 26, nameTextStyle: { color: look.soft },
  splitNumber: look.narrow ? 3 : 5, splitLine: { lineStyle: { color: look.line } }, ...more,
  axisLabel: { color: look.soft, hideOverlap: true, ...more?.axisLabel },
});

// twoLines breaks a label before its MAC, its mark or its server, or behind what it is a level of.
const breaks = [[' + ', '\n+ '], ['  (', '\n('], [': ', ':\n'], [' to ', '\nto ']];
const twoLines = text => text.replace(...(breaks.find(([at]) => text.includes(at)) || ['', ''])).split('\n').map(line => clip(line, 36)).join('\n');

const categoryAxis = (items, look, width) => ({
  type: 'category', inverse: true, data: items.map((item, i) => String(i)),
  axisLabel: { color: look.fg, interval: 0, formatter: i => look.narrow ? twoLines(named(items[i])) : clip(named(items[i]), 60), fontSize: look.narrow ? 10 : 12, lineHeight: look.narrow ? 12 : 14 },
  axisTick: { show: false }, axisLine: { lineStyle: { color: look.line } },
});

// scroller shows the first rows and lets the others be reached.
const scroller = (items, look) => !scrolls(items, look) ? [] : [{
  type: 'slider', yAxisIndex: 0, startValue: 0, endValue: rowsShown - 1, right: 4, width: 16, showDetail: false, showDataShadow: false, brushSelect: false,
  borderColor: look.line, fillerColor: look.filler, handleSize: '80%', textStyle: { color: look.soft },
}];

const grid = (items, look) => ({ left: 8, right: scrolls(items, look) ? 34 : 16, top: 34, bottom: 34, containLabel: true });

const legend = (chart, look) => chart.series.length < 2 ? undefined : { type: 'scroll', data: chart.series, left: 0, right: 34, top: 0, textStyle: { color: look.fg }, pageTextStyle: { color: look.soft } };

const rowTip = (chart, items) => params => {
  const item = items[params.dataIndex];
  return [named(item), ...chart.series.map((s, k) => `${s}: ${sayPoint(item.points[k], chart.unit)}`)].join('\n');
};

const markLine = (chart, look) => chart.reference ? {
  silent: true, symbol: 'none', animation: false, label: { show: false }, lineStyle: { color: look.soft, type: 'dashed' }, data: [{ xAxis: chart.reference }],
} : undefined;

// whiskers draws the intervals of one series as lines with short ends.
const whiskers = (items, k, count, color) => ({
  type: 'custom', name: 'interval', silent: true, z: 3, tooltip: { show: false },
  data: items.map((item, i) => { const p = item.points[k]; return p && p.length > 2 ? [p[1], i, p[2]] : ['-', i, '-']; }),
  encode: { x: [0, 2], y: 1 },
  renderItem: (params, api) => {
    const lo = api.value(0), hi = api.value(2);
    if (!Number.isFinite(lo) || !Number.isFinite(hi)) return null;
    const a = api.coord([lo, api.value(1)]), b = api.coord([hi, api.value(1)]);
    const y = a[1] + offset(k, count, api.size([0, 1])[1]);
    return {
      type: 'group', children: [[a[0], y, b[0], y], [a[0], y - 3, a[0], y + 3], [b[0], y - 3, b[0], y + 3]].map(([x1, y1, x2, y2]) => ({
        type: 'line', shape: { x1, y1, x2, y2 }, style: { stroke: color, lineWidth: 1.4 },
      })),
    };
  },
});

// colorOf a series: a file has its color in all charts, and a bar of one series may have its own.
const colorOf = (chart, look, k, item) => look.series[(chart.series.length === 1 && item?.color || chart.first + k) % look.series.length];

// offset keeps the series of one row apart.
const offset = (k, count, height) => count < 2 ? 0 : (k - (count - 1) / 2) * height * 0.7 / count;

const dots = (chart, items, look) => ({
  ...base(chart, look), grid: grid(items, look), legend: legend(chart, look), dataZoom: scroller(items, look),
  xAxis: valueAxis(chart, look, chart.log ? { type: 'log', logBase: 2, axisLabel: { formatter: v => figure(v) } } : { scale: !!chart.reference, min: chart.reference ? undefined : 0 }), yAxis: categoryAxis(items, look),
  tooltip: { ...base(chart, look).tooltip, trigger: 'item', formatter: rowTip(chart, items) },
  series: chart.series.flatMap((name, k) => [{
    type: 'custom', name, itemStyle: { color: colorOf(chart, look, k) }, z: 4,
    markLine: k === 0 ? markLine(chart, look) : undefined,
    data: items.map((item, i) => { const p = item.points[k]; return p ? [p[0], i] : ['-', i]; }),
    encode: { x: 0, y: 1 },
    renderItem: (params, api) => {
      const x = api.value(0);
      if (!Number.isFinite(x)) return null;
      const at = api.coord([x, api.value(1)]), p = items[params.dataIndex].points[k], color = colorOf(chart, look, k);
      return {
        type: 'circle', shape: { cx: at[0], cy: at[1] + offset(k, chart.series.length, api.size([0, 1])[1]), r: 4.5 },
        style: { fill: p && p[3] ? look.bg : color, stroke: color, lineWidth: 2 },
      };
    },
  }, whiskers(items, k, chart.series.length, colorOf(chart, look, k))]),
});

const bars = (chart, items, look) => ({
  ...base(chart, look), grid: grid(items, look), legend: legend(chart, look), dataZoom: scroller(items, look),
  xAxis: valueAxis(chart, look, { min: 0 }), yAxis: categoryAxis(items, look),
  tooltip: { ...base(chart, look).tooltip, trigger: 'item', formatter: rowTip(chart, items) },
  series: chart.series.flatMap((name, k) => [{
    type: 'bar', name, barCategoryGap: '30%', barGap: '0%', markLine: k === 0 ? markLine(chart, look) : undefined,
    itemStyle: { color: colorOf(chart, look, k) },
    data: items.map(item => ({ value: item.points[k] ? item.points[k][0] : '-', itemStyle: { color: colorOf(chart, look, k, item) } })),
  }, whiskers(items, k, chart.series.length, look.fg)]),
});

const stack = (chart, items, look) => ({
  ...base(chart, look), grid: grid(items, look), legend: legend(chart, look), dataZoom: scroller(items, look),
  xAxis: valueAxis(chart, look, { min: 0 }), yAxis: categoryAxis(items, look),
  tooltip: { ...base(chart, look).tooltip, trigger: 'item', formatter: rowTip(chart, items) },
  series: chart.series.map((name, k) => ({
    type: 'bar', stack: 'sum', name, itemStyle: { color: colorOf(chart, look, k) }, barCategoryGap: '25%',
    data: items.map(item => item.points[k] ? item.points[k][0] : '-'),
  })),
});

// shade is a colour of the scale for t in 0..1, and the text colour upon it.
const shade = (scale, t) => {
  const at = Math.max(0, Math.min(1, t)) * (scale.length - 1), i = Math.min(Math.floor(at), scale.length - 2), f = at - i;
  const rgb = scale[i].map((v, c) => Math.round(v + (scale[i + 1][c] - v) * f));
  const light = 0.299 * rgb[0] + 0.587 * rgb[1] + 0.114 * rgb[2] > 140;
  return { color: `rgb(${rgb})`, ink: light ? '#111' : '#fff' };
};

const heat = (chart, items, look) => {
  const known = chart.items.flatMap(item => item.points.filter(p => p).map(p => p[0]));
  let low = Math.min(...known), high = Math.max(...known);
  if (chart.reference) {
    const arm = Math.max(high / chart.reference, chart.reference / low, 1.02) - 1;
    low = chart.reference - arm; high = chart.reference + arm;
  }
  const scale = chart.reference ? look.ratios : look.amounts;
  // Costs are coloured by what they mean for speed, 1/cost, or one slow cipher would leave one colour for all others.
  const amount = v => chart.reference || chart.rising ? v : 1 / v;
  const [least, most] = [amount(low), amount(high)].sort((a, b) => a - b);
  const place = v => most > least ? (amount(v) - least) / (most - least) : 0.5;
  const ends = amount(low) <= amount(high) ? [high, low] : [low, high];
  const colors = scale.map(c => `rgb(${c})`);
  return {
    ...base(chart, look), grid: { left: 8, right: 16, top: 60, bottom: 8, containLabel: true },
    xAxis: { type: 'category', position: 'top', data: chart.series.map((s, k) => String(k)), axisLabel: { color: look.fg, interval: 0, rotate: chart.series.length > 4 ? -40 : 0, formatter: k => clip(chart.series[k], 30) }, axisTick: { show: false }, axisLine: { show: false } },
    yAxis: { ...categoryAxis(items, look), axisLine: { show: false } },
    dataZoom: scroller(items, look),
    visualMap: { type: 'continuous', min: least, max: most, orient: 'horizontal', left: 0, top: 0, itemWidth: 14, itemHeight: 160, calculable: false, text: [`${figure(ends[0])} ${chart.unit}`, figure(ends[1])], textStyle: { color: look.fg }, inRange: { color: colors }, hoverLink: false },
    tooltip: { ...base(chart, look).tooltip, formatter: params => {
      const [k, i] = params.value;
      return `${items[i].label}\n${chart.series[k]}: ${sayPoint(items[i].points[k], chart.unit)}`;
    } },
    series: [{
      type: 'heatmap',
      data: items.flatMap((item, i) => item.points.flatMap((p, k) => p ? [{
        value: [k, i, amount(p[0])], label: { color: shade(scale, place(p[0])).ink },
      }] : [])),
      label: { show: true, fontSize: 11, formatter: params => {
        const p = items[params.value[1]].points[params.value[0]];
        return (p[3] ? '~' : '') + figure(p[0]);
      } },
      itemStyle: { borderColor: look.bg, borderWidth: 1 },
    }],
  };
};

// curve draws lines over x; what only holds them back is broken and has no dots.
const curve = (chart, items, look) => ({
  ...base(chart, look), grid: { left: 8, right: 16, top: 50, bottom: 34, containLabel: true }, legend: legend(chart, look),
  xAxis: { ...valueAxis(chart, look, { min: 0 }), name: chart.across },
  yAxis: { ...valueAxis(chart, look, chart.log ? { type: 'log', logBase: 2, axisLabel: { formatter: v => figure(v) } } : { min: 0 }), nameLocation: 'end', nameGap: 8 },
  tooltip: { ...base(chart, look).tooltip, trigger: 'item', formatter: p => `${p.seriesName}: ${figure(p.value[1])} ${chart.unit} at ${figure(p.value[0])} (${chart.across})` },
  series: items.map((item, k) => ({
    type: 'line', name: item.label, symbol: item.bound ? 'none' : 'circle', symbolSize: 7, data: item.points.map((p, n) => p && [item.x[n], p[0]]).filter(p => p),
    itemStyle: { color: item.bound ? look.soft : colorOf(chart, look, k) },
    lineStyle: { color: item.bound ? look.soft : colorOf(chart, look, k), type: item.bound ? 'dashed' : 'solid', width: 2 },
  })),
});

const shapes = { dots, bars, stack, heat, curve };

// heightOf is the height of a chart in pixels.
const heightOf = (chart, items, look) => {
  const rows = scrolls(items, look) ? rowsShown : items.length;
  switch (chart.shape) {
    case 'curve': return 380;
    case 'heat': return 130 + rows * 26;
  }
  const each = Math.max(look.narrow ? 28 : 18, chart.shape === 'stack' ? 18 : 8 + 10 * chart.series.length);
  return 80 + Math.max(rows, 2) * each;
};
