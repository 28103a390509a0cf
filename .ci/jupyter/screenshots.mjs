// A notebook in JupyterLab: not trusted, trusted, in the dark theme. Each shows its plots and its tables, and is pictured.
// Arguments: the notebook, the folder for the pictures. PATH has jupyter; CHROMIUM names the browser.
import { execFileSync, spawn } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';

const [notebook, pictures] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(pictures, { recursive: true });
const work = mkdtempSync(join(tmpdir(), 'lab-'));
const settings = join(work, 'settings');
const themes = join(settings, '@jupyterlab', 'apputils-extension');
mkdirSync(themes, { recursive: true });
const theme = (name) => writeFileSync(join(themes, 'themes.jupyterlab-settings'), JSON.stringify({ theme: name }));
const port = 18900 + process.pid % 1000;
const env = { ...process.env, JUPYTERLAB_SETTINGS_DIR: settings, JUPYTER_RUNTIME_DIR: join(work, 'run') };
const lab = spawn('jupyter', ['lab', '--no-browser', '--allow-root', `--port=${port}`, '--IdentityProvider.token=',
  '--ServerApp.disable_check_xsrf=True', `--ServerApp.root_dir=${work}`], { env, stdio: 'ignore' });
const faults = [];
try {
  const flags = ['--no-sandbox', '--disable-gpu', '--no-first-run'];
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: flags });
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/api`).catch(() => null);
    if (answer?.ok) break;
    if (tries > 240) throw new Error('JupyterLab does not answer');
    await new Promise((later) => setTimeout(later, 500));
  }
  const cases = [['not-trusted', 'JupyterLab Light'], ['trusted', 'JupyterLab Light'], ['dark', 'JupyterLab Dark']];
  for (const [name, appearance] of cases) {
    theme(appearance);
    const file = join(work, `${name}.ipynb`);
    copyFileSync(notebook, file);
    if (name !== 'not-trusted') execFileSync('jupyter', ['trust', file], { env });
    // As high as the notebook: cells out of sight are not rendered.
    const page = await browser.newPage({ viewport: { width: 1200, height: 6000 } });
    await page.goto(`http://127.0.0.1:${port}/lab/tree/${name}.ipynb?reset`, { timeout: 120_000 });
    const outputs = page.locator('.jp-OutputArea-output');
    await outputs.first().waitFor({ timeout: 120_000 });
    await page.waitForFunction(() => [...document.querySelectorAll('.jp-OutputArea-output img')].length >= 3, null, { timeout: 60_000 })
      .catch(() => faults.push(`${name}: fewer than three plots`));
    await page.waitForTimeout(3000);
    const seen = await page.evaluate(() => ({
      blank: [...document.querySelectorAll('.jp-OutputArea-output img')].filter((image) => !image.naturalWidth || !image.alt).length,
      loose: [...document.querySelectorAll('.jp-OutputArea-output')].filter((output) => /--plot|Horizontal bars/.test(output.innerText)).length,
      aligned: [...document.querySelectorAll('.jp-OutputArea-output td')].every((cell) => ['left', 'start'].includes(getComputedStyle(cell).textAlign)),
      cells: document.querySelectorAll('.jp-OutputArea-output td').length,
    }));
    if (seen.blank) faults.push(`${name}: ${seen.blank} plots are not shown or have no text`);
    if (seen.loose) faults.push(`${name}: loose text in ${seen.loose} outputs`);
    if (!seen.cells || !seen.aligned) faults.push(`${name}: tables are not aligned (${seen.cells} cells)`);
    await page.locator('.jp-Notebook').first().screenshot({ path: join(pictures, `${name}.png`) });
    await page.close();
  }
  await browser.close();
} finally {
  lab.kill('SIGINT');
  setTimeout(() => lab.kill('SIGKILL'), 5000).unref();
}
faults.forEach((fault) => console.error(fault));
console.log(faults.length ? `${faults.length} faults` : `pictures in ${pictures}`);
process.exit(faults.length ? 1 : 0);
