import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { evaluate } from '@shellfleet/policy';
import Docker from 'dockerode';
import { createRandom, type Random } from '../../support/random.ts';
import { buildStatic } from '../build-static.ts';
import { runFrames } from '../run-frames.ts';
import { generateCommand, type HelpOptions, PROGRAMS, parseHelp } from './generate-command.ts';

/** Claim about a command: that it writes nothing and starts nothing, or that it starts nothing. */
type Claim = 'safe' | 'starts-nothing';

interface Claimed {
  argv: string[];
  claim: Claim;
}

export interface SafeTrialOptions {
  dockerHost: string;
  images: readonly string[];
  seed: number;
  /** Number of commands with a claim. Others are generated and not run. */
  count: number;
  /** Returns the claim about a command. Default: the result of `evaluate`. */
  claimOf?: (argv: readonly string[]) => Claim | undefined;
  report?: (line: string) => void;
}

export interface SafeTrialReport {
  generated: number;
  /** Number of programs that were run, in all images. */
  run: number;
  /** Names of the programs that were run. */
  programs: string[];
  wronglyClaimed: (Claimed & { image: string })[];
}

const BATCH = 5_000;
/** Builtins of every shell. A session runs these instead of the programs with these names. */
const BUILTINS = new Set(['cd', 'echo', 'false', 'pwd', 'true']);

/**
 * Generates commands, runs those that are called safe as real programs under a guard, and reports each that writes or
 * starts something.
 */
export async function runSafeTrial(options: SafeTrialOptions): Promise<SafeTrialReport> {
  const { dockerHost, images, seed, count, claimOf = claimOfPolicy, report = () => {} } = options;
  await using directory = await openDirectory();
  const docker = new Docker({ socketPath: dockerHost.replace(/^unix:\/\//, '') });
  await buildStatic(join(import.meta.dirname, 'guard.c'), join(directory.path, 'run'));
  const totals: SafeTrialReport = { generated: 0, run: 0, programs: [], wronglyClaimed: [] };
  const programs = new Set<string>();
  await Promise.all(
    images.map(async (image, index) => {
      const random = createRandom(seed + index);
      const helps = await readHelps(docker, image);
      for (let left = count; left > 0; left -= BATCH) {
        const { claimed, generated } = generateClaimed(random, helps, Math.min(left, BATCH), claimOf);
        const found = await runGuarded(docker, directory.path, image, claimed);
        totals.generated += generated;
        for (const [at, one] of claimed.entries()) {
          if (found[at] === '?') continue;
          totals.run += 1;
          programs.add(one.argv[0] as string);
          if (found[at] !== '0') totals.wronglyClaimed.push({ image, ...one });
        }
        report(`${image}: ${totals.run} programs, ${totals.wronglyClaimed.length} wrongly called safe`);
      }
    }),
  );
  return { ...totals, programs: [...programs].sort() };
}

function generateClaimed(
  random: Random,
  helps: HelpOptions,
  count: number,
  claimOf: (argv: readonly string[]) => Claim | undefined,
) {
  const claimed: Claimed[] = [];
  let generated = 0;
  for (; claimed.length < count; generated += 1) {
    const argv = generateCommand(random, helps);
    const claim = claimOf(argv);
    if (claim !== undefined) claimed.push({ argv, claim });
  }
  return { claimed, generated };
}

function claimOfPolicy(argv: readonly string[]): Claim | undefined {
  const script = argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const { classification, amendment } = evaluate(script, { approval: 'unless-trusted' });
  if (classification === 'safe') return 'safe';
  return amendment === undefined ? undefined : 'starts-nothing';
}

async function runGuarded(
  docker: Docker,
  directory: string,
  image: string,
  claimed: readonly Claimed[],
): Promise<string> {
  const letterOf = ({ argv: [name = ''], claim }: Claimed) => (BUILTINS.has(name) ? 'b' : claim === 'safe' ? 's' : 'n');
  const frames = claimed.map((one) => Buffer.from(`${letterOf(one)}${one.argv.map((word) => `${word}\0`).join('')}`));
  const log = await runFrames(docker, directory, { image, entrypoint: ['/trial/run'], env: [], frames });
  if (log.length !== claimed.length)
    throw new Error(`${log.length} of ${claimed.length} programs were run in ${image}.`);
  return log.toString();
}

/** Returns the help of each program about its options. */
async function readHelps(docker: Docker, image: string): Promise<HelpOptions> {
  const script = `for p in ${PROGRAMS.join(' ')}; do echo "@@ $p"; timeout 2 "$p" --help < /dev/null 2>&1 | head -c 20000; echo; done`;
  const container = await docker.createContainer({
    Image: image,
    User: '65534:65534',
    WorkingDir: '/tmp',
    Entrypoint: ['/bin/sh', '-c', script],
    HostConfig: { NetworkMode: 'none', Tmpfs: { '/tmp': 'size=16m,mode=1777' }, ReadonlyRootfs: true },
    Tty: true,
  });
  try {
    const stream = await container.attach({ stream: true, stdout: true, stderr: true });
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    const ended = new Promise((resolve) => stream.once('end', resolve));
    await container.start();
    await ended;
    const parts = Buffer.concat(chunks).toString().split('@@ ').slice(1);
    return new Map(
      parts.map((part) => {
        const name = part.slice(0, part.search(/\s/));
        return [name, parseHelp(name, part)];
      }),
    );
  } finally {
    await container.remove({ force: true, v: true });
  }
}

async function openDirectory(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'shellfleet-safe-'));
  await chmod(path, 0o755);
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}
