import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium, type Page } from 'playwright-core';

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

/**
 * A real Chromium; `CHROMIUM`, else the PATH, else installed from Debian's packages when we are root. Rather its headless
 * shell: the same engine without windows, tabs and all that a browser has around a page, for half the CPU.
 */
export function startChromium(): Promise<Browser> {
  return chromium.launch({ executablePath: findChromium(), args: flags, headless: true, timeout: 120_000 });
}

/** The page's errors, warnings (a violation of its policy is one) and dialogs, as they come. */
export function complaintsOf(page: Page): string[] {
  const complaints: string[] = [];
  page.on('pageerror', (fault) => complaints.push(String(fault)));
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('dialog', (dialog) => {
    complaints.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  return complaints;
}

export function findChromium(): string {
  const given = process.env.CHROMIUM;
  if (given !== undefined && given !== '') return given;
  return searchPath() ?? installChromium();
}

const shell = 'chromium-headless-shell';

function searchPath(): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/bin'];
  return [shell, 'chromium', 'chromium-browser', 'google-chrome']
    .flatMap((name) => folders.map((folder) => join(folder, name)))
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
  const install = (name: string) =>
    execFileSync('apt-get', ['install', '-qq', '-y', '--no-install-recommends', name], {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    });
  try {
    execFileSync('apt-get', ['update', '-qq'], { stdio: ['ignore', 'ignore', 'inherit'] });
    try {
      install(shell);
    } catch {
      // A release that has no such package has the whole browser.
      install('chromium');
    }
  } catch (cause) {
    throw new Error(advice, { cause });
  }
  const installed = searchPath();
  if (installed === undefined) throw new Error(advice);
  return installed;
}
