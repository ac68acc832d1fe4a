import type { Decision } from '@shellfleet/policy';
import { createRandom } from '../support/random.ts';
import { generateScript } from './generate-script.ts';
import { type Executed, openShellRunner, type TrialShell } from './run-in-shells.ts';
import { decideScript, isCovered } from './trial-rules.ts';

export interface TrialOptions {
  dockerHost: string;
  shells: readonly TrialShell[];
  seed: number;
  /** Number of scripts that the rules allow. Others are generated and counted, but not run. */
  count: number;
  /** Decides which scripts run. Default: those that need no question. */
  admits?: (script: string, decision: Decision) => boolean;
  report?: (line: string) => void;
}

export interface TrialReport {
  generated: number;
  allowed: number;
  /** Number of programs that were started, in all shells. */
  executed: number;
  wronglyAllowed: WronglyAllowed[];
}

interface WronglyAllowed {
  shell: string;
  script: string;
  argv: string[];
}

interface Admitted {
  script: string;
  decision: Decision;
}

const BATCH = 5_000;

/**
 * Generates scripts, runs those that the rules allow in real shells, and compares each started program with the rules.
 */
export async function runTrial({
  dockerHost,
  shells,
  seed,
  count,
  admits = (_, { requirement }) => requirement === 'skip',
  report = () => {},
}: TrialOptions): Promise<TrialReport> {
  await using runner = await openShellRunner(dockerHost);
  const random = createRandom(seed);
  const totals: TrialReport = { generated: 0, allowed: 0, executed: 0, wronglyAllowed: [] };
  while (totals.allowed < count) {
    const batch = new Map<string, Admitted>();
    const size = Math.min(BATCH, count - totals.allowed);
    while (batch.size < size) {
      const script = generateScript(random);
      totals.generated += 1;
      const decision = decideScript(script);
      if (admits(script, decision)) batch.set(script, { script, decision });
    }
    const admitted = [...batch.values()];
    const scripts = admitted.map(({ script }) => script);
    await Promise.all(
      shells.map(async (shell) => {
        for (const [index, executed] of (await runner.run(shell, scripts)).entries())
          add(totals, shell, admitted[index] as Admitted, executed);
      }),
    );
    totals.allowed += admitted.length;
    report(
      `${totals.allowed} of ${totals.generated} allowed, ${totals.executed} programs, ${totals.wronglyAllowed.length} wrongly`,
    );
  }
  return totals;
}

function add(totals: TrialReport, { name }: TrialShell, { script, decision }: Admitted, executed: Executed): void {
  totals.executed += executed.length;
  for (const argv of executed)
    if (!isCovered(argv, decision) || !isSegment(argv, decision))
      totals.wronglyAllowed.push({ shell: name, script, argv });
}

/**
 * Returns whether the executed words are those of a segment that the rules have read, which they are when the shell
 * expands nothing.
 */
function isSegment(argv: readonly string[], { segments }: Decision): boolean {
  const text = JSON.stringify(argv);
  return segments.some(
    ({ words }) => JSON.stringify(words) === text || words.some((word) => /[$*?[{~]|\P{ASCII}/u.test(word)),
  );
}
