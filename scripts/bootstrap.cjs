#!/usr/bin/env node
// The entry point. Runs on the installed Node, without dependencies, and then starts the pinned Node.
//   node scripts/bootstrap.cjs start|test|bench|chaos|rules-trial|kubernetes|example|images [arguments]
'use strict';
const { spawn, spawnSync } = require('node:child_process');
const { createHash } = require('node:crypto');
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const { constants } = require('node:os');
const { delimiter, join } = require('node:path');

const root = join(__dirname, '..');
const bin = join(root, 'node_modules', '.bin');
const stampPath = join(root, 'node_modules', '.shellfleet-lock');
const minimumNode = 24;

const jobs = {
  start: ['apps/producer/src/main.ts', 'up'],
  test: ['scripts/test.ts'],
  bench: ['tests/bench/main.ts'],
  chaos: ['tests/chaos/main.ts'],
  'rules-trial': ['tests/rules-trial/main.ts'],
  kubernetes: ['tests/kubernetes/main.ts'],
  example: ['examples/npm-packages/src/main.ts'],
  images: ['scripts/images.ts'],
};

function main() {
  const [job, ...rest] = process.argv.slice(2);
  if (!Object.hasOwn(jobs, job ?? ''))
    fail(`usage: node scripts/bootstrap.cjs ${Object.keys(jobs).join('|')} [arguments]`, 2);
  installDependencies();
  const [script, ...fixed] = jobs[job];
  handOver(findNode(), [join(root, script), ...fixed, ...rest]);
}

function installDependencies() {
  const lock = readFileSync(join(root, 'package-lock.json'));
  const wanted = createHash('sha256').update(lock).digest('hex');
  if (existsSync(stampPath) && readFileSync(stampPath, 'utf8') === wanted) return;
  if (existsSync(stampPath) || !isInstalled(JSON.parse(lock))) {
    say('Installing dependencies (npm ci; about half a minute)');
    // The npm that runs this script, else the one on PATH.
    const npm = process.env.npm_execpath;
    const args = ['ci', '--no-audit', '--no-fund', '--loglevel=error'];
    const options = { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] };
    const run = npm ? spawnSync(process.execPath, [npm, ...args], options) : spawnSync('npm', args, options);
    if (run.error)
      fail(`npm could not be started: ${run.error.message}. Install Node with npm, then run this again.`, 1);
    if (run.status !== 0)
      fail('npm ci failed; its reason is above. When the registry was out of reach, run this again.', 1);
  }
  writeFileSync(stampPath, wanted);
}

// Whether `npm ci` was already run by hand: npm's record of installed packages matches the lock file.
function isInstalled(lock) {
  const hiddenPath = join(root, 'node_modules', '.package-lock.json');
  if (!existsSync(hiddenPath)) return false;
  const installed = JSON.parse(readFileSync(hiddenPath, 'utf8')).packages;
  return Object.entries(lock.packages).every(([path, { version, optional, link }]) => {
    if (!path.startsWith('node_modules/')) return true;
    // Links to the packages of this checkout. A newer commit may have another one.
    if (link) return existsSync(join(root, path));
    return installed[path] ? installed[path].version === version : optional === true;
  });
}

function findNode() {
  for (const candidate of [join(bin, 'node'), 'node']) {
    const major = Number(/^v(\d+)\./.exec(spawnSync(candidate, ['--version'], { encoding: 'utf8' }).stdout ?? '')?.[1]);
    if (major >= minimumNode) return candidate;
  }
  return fail(
    `Node ${minimumNode} or newer is needed: there is no pinned one for this platform (${process.platform}-${process.arch}), and node on PATH is ${process.version}. Install Node ${minimumNode}.`,
    1,
  );
}

function handOver(node, args) {
  const env = { ...process.env, PATH: `${bin}${delimiter}${process.env.PATH ?? ''}` };
  const flags = ['--conditions=@shellfleet/source', '--no-warnings'];
  let child;
  // A terminal sends Ctrl-C to both processes, so SIGINT is ignored here. Signals to this process alone are forwarded.
  // Before the start: the program may be running, and be asked to end, before `spawn` returns.
  process.on('SIGINT', () => {});
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, () => child?.kill(signal));
  child = spawn(node, [...flags, ...args], { cwd: root, env, stdio: 'inherit' });
  child.on('error', (error) => fail(`${node} could not be started: ${error.message}`, 1));
  child.on('exit', (exitCode, signal) => process.exit(exitCode ?? 128 + constants.signals[signal]));
}

function say(line) {
  process.stderr.write(`${line}\n`);
}

function fail(line, exitCode) {
  say(line);
  // Prints the counts of a test run also when it fails before the first test.
  if (process.argv[2] === 'test') console.log('0 passed, 1 failed');
  process.exit(exitCode);
}

main();
