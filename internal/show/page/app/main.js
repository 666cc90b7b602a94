// Wires the page together.

const data = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);

const policySelect = byId('policy'), search = byId('search');
for (const policy of data.policies) {
  const option = document.createElement('option');
  option.value = policy.name;
  option.textContent = policy.name;
  option.title = policy.title;
  policySelect.append(option);
}

if (data.policies.some(p => p.name === data.policy)) policySelect.value = data.policy; // that the answer is of

const showConfiguration = policy => {
  if (!byId('config')) return;
  const { text, left, used } = configuration(policy, data.weak || [], data.postQuantum || []);
  byId('config').textContent = text;
  byId('config-weak').textContent = [
    left && `${left} weak, broken or unknown names are not copied; a policy that lists them includes them.`,
    used && `${used} of these names are weak, broken or unknown: policy ${policy.name} lists them.`,
  ].filter(note => note).join(' ');
};

const apply = () => {
  const policy = data.policies.find(p => p.name === policySelect.value);
  const shown = filterOf(policy, search.value), count = filterTables(shown);
  byId('count').textContent = `${count.shown} of ${count.all} rows`;
  byId('filters').hidden = !count.all; // nothing to filter
  showConfiguration(policy);
  drawAll(data.charts || [], shown);
};

const isDark = () => (document.documentElement.dataset.theme || (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';
const themeButton = byId('theme');
const nameTheme = () => { themeButton.textContent = isDark() ? 'Light' : 'Dark'; themeButton.setAttribute('aria-label', isDark() ? 'Switch to light colours' : 'Switch to dark colours'); };
const setTheme = theme => { document.documentElement.dataset.theme = theme; nameTheme(); apply(); };

themeButton.addEventListener('click', () => setTheme(isDark() ? 'light' : 'dark'));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => { nameTheme(); apply(); });

// Paper is white and does not scroll: print in light colours, all rows, and as
// wide as the sheet.
let before;
addEventListener('beforeprint', () => {
  before = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  const look = { ...currentLook(), narrow: false, paper: true }, shown = filterOf(data.policies.find(p => p.name === policySelect.value), search.value);
  turn++;
  removeSheets();
  for (const chart of data.charts || []) drawChart(chart, shown, look);
});
addEventListener('afterprint', () => {
  if (before) document.documentElement.dataset.theme = before; else delete document.documentElement.dataset.theme;
  removeSheets();
  apply();
});

policySelect.addEventListener('change', apply);
search.addEventListener('input', apply);
byId('filters').addEventListener('submit', event => event.preventDefault());

let width = innerWidth, resizing;
addEventListener('resize', () => {
  if (innerWidth === width) return;
  width = innerWidth;
  clearTimeout(resizing);
  resizing = setTimeout(apply, 100);
});

// Pages from files may have no clipboard: then the text is selected instead.
const select = node => {
  const range = document.createRange();
  range.selectNodeContents(node);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
};
const copyBy = (button, node, said) => {
  if (!button) return;
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(node.textContent);
      said.textContent = 'copied';
    } catch {
      select(node);
      said.textContent = 'selected: copy it with Ctrl-C';
    }
  });
};
copyBy(byId('copy'), byId('config'), byId('copied'));
copyBy(byId('answer-copy'), byId('answer-config'), byId('answer-copied'));

dataTables.forEach(makeSortable);
for (const id of ['theme', 'configuration', 'answer-copy']) if (byId(id)) byId(id).hidden = false;
nameTheme();
apply();
document.documentElement.dataset.ready = String(Math.round(performance.now()));
