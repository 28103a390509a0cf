// Opens every page of a site in Chromium: node site.mjs SITE
// No console error, no failed request, nothing requested from elsewhere, every internal link and anchor leads somewhere,
// nothing wider than a phone, and plots that follow the theme.
import { existsSync, readdirSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { resolve } from 'node:path';
import { chromium } from 'playwright-core';

const site = resolve(process.argv[2]);
const pages = readdirSync(site).filter((name) => name.endsWith('.html') && name !== 'toc.html');
const url = (name) => pathToFileURL(`${site}/${name}`).href;
const flags = ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--allow-file-access-from-files'];
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
const faults = [];
const anchors = new Map();
const links = [];
const colours = new Map();

for (const [colorScheme, width] of [['light', 1280], ['light', 360], ['dark', 1280]]) {
  const page = await browser.newPage({ viewport: { width, height: 800 }, colorScheme });
  let where = '';
  page.on('console', (message) => message.type() === 'error' && faults.push(`${where}: console: ${message.text()}`));
  page.on('pageerror', (error) => faults.push(`${where}: ${error}`));
  // A request that a navigation cut short has not failed.
  page.on('requestfailed', (request) => request.failure()?.errorText === 'net::ERR_ABORTED'
    || faults.push(`${where}: failed request: ${request.url()}`));
  page.on('request', (request) => /^(file|data|blob):/.test(request.url()) || faults.push(`${where}: ${request.url()}`));
  for (const name of pages) {
    where = `${name} at ${width} px, ${colorScheme}`;
    await page.goto(url(name), { waitUntil: 'load' });
    const seen = await page.evaluate(() => ({
      overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
      ids: [...document.querySelectorAll('[id]')].map((element) => element.id),
      links: [...document.querySelectorAll('main a[href]')].map((link) => link.href),
      fill: (() => {
        const bar = document.querySelector('figure.plots svg rect[fill^="var("], figure.plots svg path[stroke^="var("]');
        return bar && getComputedStyle(bar).fill + getComputedStyle(bar).stroke;
      })(),
    }));
    if (seen.overflow > 0) faults.push(`${where}: ${seen.overflow} px wider than the screen`);
    if (width === 1280 && colorScheme === 'light') {
      const twice = seen.ids.filter((id, i) => seen.ids.indexOf(id) !== i);
      if (twice.length > 0) faults.push(`${where}: ids that occur twice: ${twice.slice(0, 5)}`);
      anchors.set(url(name), new Set(seen.ids));
      links.push(...seen.links.map((link) => [name, link]));
      colours.set(name, seen.fill);
    }
    if (colorScheme === 'dark' && seen.fill && seen.fill === colours.get(name)) faults.push(`${where}: plots stay light`);
  }
  await page.close();
}
for (const [name, link] of links) {
  const [target, anchor] = link.split('#');
  if (!target.startsWith('file:')) continue;
  if (!target.endsWith('.html') && !target.endsWith('/')) {
    if (!existsSync(fileURLToPath(target))) faults.push(`${name}: a download that is not there: ${link}`);
    continue;
  }
  const ids = anchors.get(target.replace(/\/$/, '/index.html'));
  if (!ids) faults.push(`${name}: a link to nothing: ${link}`);
  else if (anchor && !ids.has(decodeURIComponent(anchor))) faults.push(`${name}: an anchor that is not there: ${link}`);
}
await browser.close();
faults.forEach((fault) => console.error(fault));
console.log(`${pages.length} pages, ${links.length} links, ${faults.length} faults`);
process.exit(faults.length === 0 ? 0 : 1);
