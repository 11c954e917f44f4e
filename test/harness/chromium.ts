import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

/** Nothing of it talks to anybody but the page under test. */
const flags = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** A real, headless Chromium; `CHROMIUM`, else the PATH, else installed from Debian's packages when we are root. */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: flags, headless: true, timeout: 120_000 });
}

export function findChromium(): string {
  const given = process.env.CHROMIUM;
  if (given !== undefined && given !== '') return given;
  return searchPath() ?? installChromium();
}

function searchPath(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin'];
  return folders
    .flatMap((folder) => ['chromium', 'chromium-browser', 'google-chrome'].map((name) => join(folder, name)))
    .find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function installChromium(): string {
  const advice = 'the browser test needs Chromium: install it, or name one with CHROMIUM=/path/to/chromium';
  if (process.getuid?.() !== 0) throw new Error(advice);
  process.stderr.write('installing chromium from the packages of this system for the browser test\n');
  try {
    execFileSync('apt-get', ['update', '-qq'], { stdio: ['ignore', 'ignore', 'inherit'] });
    execFileSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', 'chromium'], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  } catch (cause) {
    throw new Error(advice, { cause });
  }
  const installed = searchPath();
  if (installed === undefined) throw new Error(advice);
  return installed;
}
