import { ATTRIBUTES, nameSpan, SPANS, type TracingChoice } from '@shellfleet/protocol';
import type { Tracing } from '@shellfleet/vendor/opentelemetry';
import { runCli, verbOf } from './cli/program.ts';
import { isVerb } from './cli/verbs.ts';
import type { Config } from './config.ts';

/** How long the end of a call may wait for its spans to be exported. */
const EXPORT_MS = 1_000;
/** Verbs without a span: they last as long as a fleet, a terminal or a screen, or run at each press of a key. */
const UNTRACED: ReadonlySet<string> = new Set(['up', 'worker', 'attach', 'top', 'completion']);

/** Runs the command line in a span, below the span that the variable TRACEPARENT names. */
export async function runTraced(
  args: readonly string[],
  config: Config,
  choice: TracingChoice | string,
): Promise<number> {
  const verb = verbOf(args);
  if (verb === undefined || UNTRACED.has(verb) || !isVerb(verb)) return runCli(args, config);
  // A shell may have these settings for other programs, so what is not supported is no warning of every call.
  const say = (problem: string) => {
    if (config.debug) process.stderr.write(`shellfleet: ${problem}\n`);
  };
  if (typeof choice === 'string') {
    say(choice);
    return runCli(args, config);
  }
  const tracing = await begin(choice, config, say).catch((error: unknown) => say(`Nothing is traced: ${error}`));
  if (tracing === undefined) return runCli(args, config);
  const { TRACEPARENT: traceparent, TRACESTATE: tracestate } = config.env;
  const program = {
    name: nameSpan(SPANS.verb, verb),
    attributes: { [ATTRIBUTES.executable]: 'shellfleet' },
    parent: { traceparent, tracestate },
  };
  const exitCode = await tracing.during(
    program,
    () => runCli(args, config),
    (code) => ({ attributes: { [ATTRIBUTES.exitCode]: code }, failed: code !== 0 }),
  );
  await tracing.end(EXPORT_MS);
  return exitCode;
}

async function begin(choice: TracingChoice, { version }: Config, say: (problem: string) => void): Promise<Tracing> {
  const { startTracing } = await import('@shellfleet/vendor/opentelemetry');
  const resource = { 'service.name': 'shellfleet', 'service.version': version };
  return startTracing({ ...choice, resource, onError: (error) => say(`Spans were not exported: ${error}`) });
}
