'use strict';
const data = JSON.parse(document.getElementById('data').textContent);
const [first, second] = ['first', 'second'].map(id => document.getElementById(id));
const count = first.options.length;
const pair = (a, b) => data.pairs[a * count - a * (a + 1) / 2 + b - a - 1];
const show = () => {
    const [a, b] = [Number(first.value), Number(second.value)];
    const ratios = a === b ? null : pair(Math.min(a, b), Math.max(a, b));
    document.querySelectorAll('#pairs tbody tr').forEach((row, place) => {
        const own = ratios && ratios[place];
        const [value, low, high] = !own ? [] : a < b ? own : [1 / own[0], 1 / own[2], 1 / own[1]];
        row.cells[1].textContent = own ? value.toFixed(3) : '—';
        row.cells[2].textContent = own ? `${low.toFixed(3)} … ${high.toFixed(3)}` : '';
    });
};
for (const choice of [first, second]) choice.addEventListener('change', show);
