import { ensureShellfleetError, type Result, type WireError } from '@shellfleet/protocol';
import { readGrade } from './read-grade.ts';
import { RUN_AGAIN } from './results-file.ts';
import { stepKey } from './step-keys.ts';
import type { ParsedTask } from './task.ts';
import type { EndedBy, TaskOutput, TaskResult, TaskStep } from './task-result.ts';

/** How one attempt at a task ended. */
export type AttemptEnd = Pick<
  TaskResult,
  | 'outcome'
  | 'passed'
  | 'score'
  | 'endedIn'
  | 'endedBy'
  | 'setup'
  | 'results'
  | 'grade'
  | 'outputs'
  | 'error'
  | 'outputBytes'
  | 'cpuMs'
  | 'peakMemoryBytes'
>;

/** Runs a command of a task. Returns undefined for a command that an earlier attempt has not begun. */
export type RunCommand = (command: { key: string; script: string }) => Promise<Result | undefined>;

/** What one attempt at a task has done so far. */
export class TaskTrail {
  readonly task: ParsedTask;
  /** The step that is being done, or in which the attempt ended. */
  step: TaskStep = 'files';
  readonly setup: Result[] = [];
  readonly results: Result[] = [];
  grade: Result | undefined;
  outputs: Record<string, TaskOutput> | undefined;

  constructor(task: ParsedTask) {
    this.task = task;
  }

  /** The last Result of the commands before the grade. */
  get last(): Result | undefined {
    return this.results.at(-1) ?? this.setup.at(-1);
  }

  /** Whether there is a sandbox as the commands left it, so that its files can be fetched. */
  get isReadable(): boolean {
    const { outcome, hostId = null } = this.last ?? {};
    return hostId !== null && outcome !== 'error' && outcome !== 'lost';
  }

  /** Whether the scripts ended in a way that a grade can decide about. */
  get isGradable(): boolean {
    const isPrepared = this.setup.every(({ outcome }) => outcome === 'success');
    return this.isReadable && isPrepared && this.last?.outcome !== 'cancellation';
  }

  /**
   * Runs `setup` and the scripts, up to the first that does not succeed. Returns false if a command is missing that an
   * earlier attempt should have begun.
   */
  async runScripts(run: RunCommand): Promise<boolean> {
    const { setup = [], script } = this.task;
    const steps = [
      { step: 'setup', scripts: setup, results: this.setup },
      { step: 'script', scripts: [script].flat(), results: this.results },
    ] as const;
    for (const { step, scripts, results } of steps) {
      this.step = step;
      for (const [index, text] of scripts.entries()) {
        const result = await run({ key: stepKey(step, index), script: text });
        if (result === undefined) return false;
        results.push(result);
        if (result.outcome !== 'success') return true;
      }
    }
    return true;
  }

  /** Returns the end of an attempt whose steps were all done, or that ended with a Result. */
  end(): AttemptEnd {
    const { last, grade } = this;
    const isGraded = grade !== undefined && !RUN_AGAIN.includes(grade.outcome);
    // A grade that did not pass is no failure of the scripts. One that the fleet could not run is.
    const decisive = isGraded || grade === undefined ? last : grade;
    const outcome = decisive?.outcome ?? 'success';
    const error = decisive?.error;
    const isEarly = outcome !== 'success' && !isGraded;
    return {
      outcome,
      ...(isGraded ? readGrade(grade) : { passed: outcome === 'success' && this.task.grade === undefined }),
      ...(isEarly ? { endedIn: decisive === grade ? ('grade' as const) : this.#stepOf(decisive) } : {}),
      ...this.#done(),
      ...(error === undefined ? {} : { error }),
    };
  }

  /** Returns the end of an attempt that ended with an error of the fleet. */
  failed(cause: unknown): AttemptEnd {
    const error: WireError = ensureShellfleetError(cause).toJSON();
    return { outcome: 'error', passed: false, endedIn: this.step, ...this.#done(), error };
  }

  /** Returns the end of an attempt that the batch ended. */
  stopped(endedBy: EndedBy): AttemptEnd {
    const outcome = endedBy === 'deadline' ? 'timeout' : 'cancellation';
    return { outcome, passed: false, endedIn: this.step, endedBy, ...this.#done() };
  }

  #done() {
    const { setup, results, grade, outputs, task } = this;
    const all = [...setup, ...results, ...(grade === undefined ? [] : [grade])];
    const usages = all.flatMap(({ usage = [] }) => usage);
    return {
      ...(task.setup === undefined ? {} : { setup }),
      results,
      ...(grade === undefined ? {} : { grade }),
      ...(outputs === undefined ? {} : { outputs }),
      outputBytes: all.reduce((sum, { totals }) => sum + totals.stdoutBytes + totals.stderrBytes, 0),
      ...(usages.length === 0
        ? {}
        : {
            cpuMs: usages.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
            peakMemoryBytes: Math.max(...usages.map(({ peakMemoryBytes }) => peakMemoryBytes)),
          }),
    };
  }

  #stepOf(result: Result | undefined): TaskStep {
    return this.results.length === 0 && result === this.setup.at(-1) ? 'setup' : 'script';
  }
}
