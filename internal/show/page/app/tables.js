// Sorting and filtering of the tables, and the configuration lines.

const dataTables = [...document.querySelectorAll('table.data')];
const rowsOf = table => [...table.tBodies[0].rows];

const sortKey = (row, column) => {
  const cell = row.cells[column];
  return cell.classList.contains('n') ? (cell.dataset.v === undefined ? Infinity : Number(cell.dataset.v)) : cell.textContent;
};

const sortBy = (table, header) => {
  const descending = header.getAttribute('aria-sort') === 'ascending', column = header.cellIndex;
  for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
  header.setAttribute('aria-sort', descending ? 'descending' : 'ascending');
  const compare = (a, b) => {
    const x = sortKey(a, column), y = sortKey(b, column);
    return typeof x === 'number' ? x - y || 0 : x.localeCompare(y);
  };
  table.tBodies[0].append(...rowsOf(table).sort((a, b) => descending ? compare(b, a) : compare(a, b)));
};

const makeSortable = table => {
  for (const header of table.tHead.rows[0].cells) {
    const button = document.createElement('button');
    button.type = 'button';
    button.textContent = header.textContent;
    button.addEventListener('click', () => sortBy(table, header));
    header.replaceChildren(button);
  }
};

// allows: may every name of this row be used under the policy?
const allows = (policy, row) => !policy || ['cipher', 'mac', 'kex'].every(kind => !row[kind] || !policy[kind] || policy[kind].includes(row[kind]));

// matches: do the names hold all words?
const matches = (words, row) => {
  const names = [row.cipher, row.mac, row.kex].join(' ').toLowerCase();
  return words.every(word => names.includes(word));
};

const filterOf = (policy, text) => {
  const words = text.toLowerCase().split(/\s+/).filter(word => word);
  return row => !(row.cipher || row.mac || row.kex) || allows(policy, row) && matches(words, row);
};

// filterTables hides rows and counts what is left of the first table.
const filterTables = shown => {
  for (const table of dataTables) {
    for (const row of rowsOf(table)) row.hidden = !shown(row.dataset);
  }
  const rows = dataTables.flatMap(rowsOf).filter(row => row.dataset.cipher || row.dataset.mac || row.dataset.kex);
  return { shown: rows.filter(row => !row.hidden).length, all: rows.length };
};

// A name that is no plain SSH name (RFC 4251 section 6) never becomes configuration.
const plainName = /^[A-Za-z0-9][A-Za-z0-9@._+-]*$/;

const keywords = { cipher: 'Ciphers', mac: 'MACs', kex: 'KexAlgorithms' };

// configuration lists the names of the visible rows, fastest first: the rank
// orders them, whatever the table is sorted by. Post-quantum key exchanges stand
// before all others, as sshpace advise has them, and with all their names, which
// older servers need. Weak names are left out, unless the policy itself lists
// them. A list that begins with ^ keeps all other algorithms (ssh_config(5)).
const configuration = (policy, weak, postQuantum) => {
  const lists = { cipher: new Set(), mac: new Set(), kex: new Set() }, left = new Set();
  for (const table of dataTables) {
    if (!table.closest('[data-table=ranking], [data-table=kex]')) continue;
    const rows = rowsOf(table).filter(row => !row.hidden).sort((a, b) => sortKey(a, 0) - sortKey(b, 0));
    for (const { dataset } of rows) {
      for (const kind of Object.keys(lists)) {
        const name = dataset[kind], names = [name, ...(kind === 'kex' && dataset.aliases || '').split(' ')];
        const unwanted = weak.includes(name) && !policy?.[kind]?.includes(name);
        for (const plain of names.filter(n => n && plainName.test(n))) (unwanted ? left : lists[kind]).add(plain);
      }
    }
  }
  const late = name => postQuantum.includes(name) || postQuantum.includes(name.replace(/@.*/, '')) ? 0 : 1;
  lists.kex = [...lists.kex].sort((a, b) => late(a) - late(b));
  const used = Object.values(lists).flatMap(names => [...names]).filter(name => weak.includes(name));
  const text = Object.entries(lists).map(([kind, names]) => [...names].length ? `${keywords[kind]} ^${[...names].join(',')}\n` : '').join('');
  return { text, left: left.size, used: used.length };
};
