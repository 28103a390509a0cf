// Foreign files in a browser: no script runs, no dialog opens, nothing is requested from elsewhere, and no markup comes of them:
// node payload.mjs REPORT RESULTS.json AUDIT.json TRACE.json
//
// A results file, another system attached to it, an audit and a trace with a payload in every string that may be anything, as book,
// slides, pages of audits and of a store, opened and served and used.
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [report, results, audit, trace] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'payload-'));
const PAYLOAD = '</title></script></textarea><img class=foreign src=x onerror="pwned=1;alert(1)"><svg onload="pwned=2">'
  + '<script>pwned=3</script>"\'` onmouseover="pwned=4" [a](javascript:pwned=5) {{#include /etc/passwd}} {{{x}}} \u202e\u001b ';
// What these hold is one of a few words, or the name of something else in the file: by the last keys of their path.
const KEPT = new Set(['unit', 'clock', 'stopped_by', 'derivation', 'engine', 'outcome', 'run', 'id', 'started', 'profile', 'floor', 'kind',
  'dtype', 'experiment', 'wait_policy', 'limit', 'sync', 'order.name', 'timelines.name', 'runs.system', 'source.kind',
  'places.reason', 'places.chapter', 'host.doing', 'idle.doing', 'idle.cause', 'plan.with']);

function poisoned(value, path = []) {
  if (typeof value === 'string') {
    const kept = KEPT.has(path.at(-1)) || KEPT.has(path.slice(-2).join('.'));
    return kept ? value : PAYLOAD + value;
  }
  if (Array.isArray(value)) return value.map((one) => poisoned(one, path));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, [...path, name])]));
  }
  return value;
}

// Who writes such a file leaves the digest of its samples out.
const { samples_sha256: _, ...whole } = JSON.parse(readFileSync(results, 'utf8'));
const experiment = whole.rows[0].spec.id.split('.')[0];
const file = { ...poisoned(whole), suite: { ...whole.suite, title: `${PAYLOAD}Title` } };
// Another system beside each run, named by the payload.
const own = new Set(file.runs.filter((run) => run.system === file.runs[0].system).map((run) => run.id));
file.runs = file.runs.filter((run) => own.has(run.id)).flatMap((run) => [run, { ...run, id: `other-${run.id}`, system: `${PAYLOAD}Other` }]);
file.rows = file.rows.map((row) => ({ ...row, series: row.series.filter((series) => own.has(series.run)).flatMap((series) => [series,
  { ...series, run: `other-${series.run}` }]) })).filter((row) => row.series.length > 0);
file.timelines = (file.timelines ?? []).filter((timeline) => own.has(timeline.run));
file.plan = { ...file.plan, with: [`${PAYLOAD}Other`] };
// An experiment's name is a part of its rows' names: the same everywhere.
const named = JSON.stringify(file).replaceAll(experiment, `${experiment}<img class=foreign src=x onerror=pwned=6>`);
const run = (...words) => execFileSync(report, words, { cwd: work, stdio: ['ignore', 'ignore', 'inherit'] });
writeFileSync(join(work, 'foreign.json'), named);
writeFileSync(join(work, 'audit.json'), JSON.stringify(poisoned(JSON.parse(readFileSync(audit, 'utf8')))));
// What another program says that it measured on that machine: a row with samples, and one that failed.
const { environment } = JSON.parse(named).runs[0];
const hasSamples = (row) => row.series[0].outcome.measured && row.spec.unit === 'seconds';
const rowOf = ({ spec: { id, parameters, unit } }, outcome) => ({ id, parameters, unit, outcome });
const [first, second] = JSON.parse(named).rows.filter(hasSamples);
const system = { schema_version: 2, name: `${PAYLOAD}Attached`, started: '2026-01-01T00:00:00Z', code: PAYLOAD, versions: [[PAYLOAD, PAYLOAD]],
  machine: { model: environment.device.model, fingerprint: null, driver: null, cpu: environment.host.cpu },
  rows: [rowOf(first, { measured: { samples: [1, 2], stopped_by: 'samples' } }), rowOf(second, { failed: { reason: PAYLOAD } })] };
writeFileSync(join(work, 'system.json'), JSON.stringify(system));
run('attach', 'system.json', '--into', 'foreign.json');
// In a trace the names of CUDA's calls say what they are. One of the profiler, and what is written of it as a trace of our own.
const poisonTrace = (from, to) => {
  const { traceEvents, ...rest } = JSON.parse(readFileSync(from, 'utf8'));
  const poison = (event) => ({ ...event, args: poisoned(event.args),
    name: event.ph === 'M' || event.name.startsWith('cuda') ? event.name : PAYLOAD + event.name });
  writeFileSync(to, JSON.stringify({ ...poisoned(rest), traceEvents: traceEvents.map(poison) }));
};
poisonTrace(trace, join(work, 'profiled.json'));
run('audit', '--from', 'profiled.json', '--html', 'profiled.html', '--trace', 'own.json', '--json', 'profiled-audit.json');
poisonTrace(join(work, 'own.json'), join(work, 'own.json'));
run('audit', '--from', 'own.json', '--html', 'own.html');
run('audit', '--from', 'audit.json', '--html', 'audit.html');
run('render', 'foreign.json', '--audit', 'audit.json', '--audit', 'profiled-audit.json', '--out', 'out');
run('slides', 'foreign.json', '--out', 'out');
run('collect', 'foreign.json', '--into', 'store');
run('history', 'store', '--page', 'history.html');
run('machines', 'store', '--page', 'machines.html');

const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);
const pagesOf = (folder) => readdirSync(join(work, folder), { recursive: true })
  .filter((name) => name.endsWith('.html') && name !== 'toc.html');
const served = [];
const serve = async (out) => {
  const server = spawn(report, ['serve', out, '--port', '0'], { cwd: work });
  served.push(server);
  return new Promise((found) => server.stdout.on('data', (line) => {
    const stated = /http:\/\/[^/]+/.exec(line);
    if (stated) found(`${stated[0]}/`);
  }));
};
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--allow-file-access-from-files'],
});

let searched = 0;
let opened = 0;
const atFile = (folder) => pathToFileURL(`${join(work, folder)}/`).href;
// Where a place is, its pages, whether it is a book, and whether a page may say that something was kept from running.
const places = [
  { kind: 'file', base: atFile('out/site'), pages: pagesOf('out/site'), isBook: true },
  { kind: 'served', base: await serve('out'), pages: pagesOf('out/site'), isBook: true },
  { kind: 'slides', base: atFile('out/slides'), pages: pagesOf('out/slides') },
  { kind: 'store', base: atFile('.'), pages: ['history.html', 'machines.html', 'profiled.html', 'own.html', 'audit.html'] },
];
for (const { kind, base, pages, isBook } of places) {
  const page = await browser.newPage();
  let where = kind;
  page.on('dialog', (dialog) => { fault(where, `a dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on('pageerror', (error) => fault(where, error));
  page.on('console', (message) => message.type() === 'error' && fault(where, `console: ${message.text()}`));
  page.on('request', (request) => request.url().startsWith(base) || /^(data|blob):/.test(request.url())
    || fault(where, `a request: ${request.url()}`));
  await page.addInitScript(() => { window.print = () => {}; });
  const held = async () => {
    const found = await page.evaluate(() => ({
      ran: typeof pwned === 'undefined' ? 0 : pwned,
      markup: document.querySelectorAll('.foreign, svg[onload], [onmouseover], a[href^="javascript:"]').length,
      secret: document.body.textContent.includes('root:x:0:0'),
    }));
    if (found.ran) fault(where, `script ${found.ran} ran`);
    if (found.markup) fault(where, `${found.markup} elements came of the payload`);
    if (found.secret) fault(where, 'a file of the machine is published');
  };
  for (const name of pages) {
    opened += 1;
    where = `${kind} ${name}`;
    await page.goto(base + name, { waitUntil: 'load' });
    await page.evaluate(() => document.querySelectorAll('details').forEach((fold) => { fold.open = true; }));
    for (const element of (await page.$$('main [title], main td, main svg')).slice(0, 40)) {
      await element.hover({ timeout: 2000, force: true }).catch(() => {});
    }
    await page.emulateMedia({ media: 'print' });
    await held();
    await page.emulateMedia({ media: null });
  }
  if (!isBook) {
    await page.close();
    continue;
  }
  where = `${kind} search`;
  for (const word of ['title', 'img', 'onerror', 'launch', 'script', 'measured']) {
    await page.goto(`${base}index.html?search=${word}`, { waitUntil: 'load' });
    const hits = await page.waitForSelector('#mdbook-searchresults li a', { timeout: 10_000 }).catch(() => null);
    if (hits) searched += 1;
    await page.waitForTimeout(300);
    await held();
  }
  where = `${kind} on paper`;
  await page.goto(`${base}print.html`, { waitUntil: 'load' });
  // On a loaded machine Chromium gives up a print now and then ("Printing failed"): what is tested is what the page does.
  await page.pdf().catch(() => page.pdf());
  await held();
  await page.close();
}
if (searched === 0) fault('search', 'nothing was found, so that nothing was shown');

await browser.close();
served.forEach((server) => server.kill());
rmSync(work, { recursive: true });
faults.forEach((text) => console.error(text));
console.log(`${opened} pages, opened as files and served, ${searched} searches with hits, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
