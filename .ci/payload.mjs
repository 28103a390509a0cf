// A results file with a payload in every string that may be anything, rendered, served and used: no script runs, no
// dialog opens, nothing is requested from elsewhere, and no markup comes of it: node payload.mjs REPORT RESULTS.json
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const [report, results] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), 'payload-'));
const PAYLOAD = '</title></script></textarea><img class=foreign src=x onerror="pwned=1;alert(1)"><svg onload="pwned=2">'
  + '<script>pwned=3</script>"\'` onmouseover="pwned=4" [a](javascript:pwned=5) {{#include /etc/passwd}} {{{x}}} \u202e\u001b ';
// What these hold is one of a few words, or the name of something else in the file.
const KEPT = new Set(['unit', 'clock', 'stopped_by', 'derivation', 'engine', 'outcome', 'run', 'id', 'started', 'profile', 'floor', 'kind',
  'name', 'system', 'dtype', 'experiment', 'wait_policy', 'limit', 'sync']);

function poisoned(value, key) {
  if (typeof value === 'string') return KEPT.has(key) ? value : PAYLOAD + value;
  if (Array.isArray(value)) return value.map((one) => poisoned(one, key));
  if (value && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, poisoned(one, name)]));
  }
  return value;
}

// Who writes such a file leaves the digest of its samples out.
const { samples_sha256: _, ...whole } = JSON.parse(readFileSync(results, 'utf8'));
const experiment = whole.rows[0].spec.id.split('.')[0];
const file = { ...poisoned(whole), suite: { ...whole.suite, title: `${PAYLOAD}Title` } };
// An experiment's name is a part of its rows' names: the same everywhere.
const named = JSON.stringify(file).replaceAll(experiment, `${experiment}<img class=foreign src=x onerror=pwned=6>`);
writeFileSync(join(work, 'foreign.json'), named);
execFileSync(report, ['render', 'foreign.json', '--out', 'out'], { cwd: work });

const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);
const site = join(work, 'out/site');
const pages = readdirSync(site, { recursive: true }).filter((name) => name.endsWith('.html') && name !== 'toc.html');
const server = spawn(report, ['serve', 'out', '--port', '0'], { cwd: work });
const address = await new Promise((found) => server.stdout.on('data', (line) => {
  const stated = /http:\/\/[^/]+/.exec(line);
  if (stated) found(stated[0]);
}));
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking', '--allow-file-access-from-files'],
});

let searched = 0;
for (const [kind, base] of [['file', pathToFileURL(`${site}/`).href], ['served', `${address}/`]]) {
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
server.kill();
rmSync(work, { recursive: true });
faults.forEach((text) => console.error(text));
console.log(`${pages.length} pages, opened as files and served, ${searched} searches with hits, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
