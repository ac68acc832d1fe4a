import { readFileSync } from 'node:fs';
import { ATTRIBUTES, ensureShellfleetError, type HostOffer, toCommandId } from '@shellfleet/protocol';
import type { Admission } from './admission/admission.ts';
import { createAdmission } from './admission/create-admission.ts';
import { decideByRules, type ReportedDecision } from './admission/decide-by-rules.ts';
import { requireFleetRules } from './admission/require-fleet-rules.ts';
import { RuleFiles } from './admission/rule-files.ts';
import { auditAnswers } from './approvals/audit-answers.ts';
import type { Audit } from './audit/audit.ts';
import { ConfigError, readConfig, type WorkerConfig } from './config/config.ts';
import type { Logger } from './log/logger.ts';
import { openLog } from './log/open-log.ts';
import { toSessionBounds } from './sandbox/open-policies.ts';
import type { HostLimits } from './sandbox/sandbox.ts';
import type { Stop } from './session/hosting.ts';
import { LogSink } from './sink/log-sink.ts';
import { openServices } from './worker/open-services.ts';
import type { SweepTimes } from './worker/sweep-sandboxes-regularly.ts';
import { createWorker } from './worker.ts';

const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8');
const VERSION = (JSON.parse(manifest) as { version: string }).version;
/** How long running commands may continue after a request to stop. */
const GRACE_MS = 30_000;
/** How long the last spans may take to be exported. */
const TRACES_MS = 2_000;
/** Additional time for an engine or Redis that does not reply. Then the process exits, and its next start cleans up. */
const EXIT_MS = 10_000;

/** Parts that a program gives its worker instead of the defaults. */
export interface WorkerParts {
  /** What the host admits. Default: the rules of its configuration. */
  admission?: Admission;
  sweepTimes?: SweepTimes;
}

/** Runs a worker process by its environment, until it stops. An error before it is ready ends the process. */
export async function startWorker(parts: WorkerParts = {}): Promise<void> {
  process.title = 'shellfleet-worker';
  const alone = endWithoutSupervisor();
  try {
    await run(parts);
    alone.becomeReady();
  } catch (error) {
    process.stderr.write(describeFailedStart(error));
    process.exit(error instanceof ConfigError ? 2 : 1);
  }
}

function describeFailedStart(error: unknown): string {
  if (error instanceof ConfigError) return `shellfleet: ${error.message}\n`;
  const { code, message, hint, stack } = ensureShellfleetError(error);
  // The messages of these errors contain the operator's next step. The hints of other errors are for producers.
  const isWhole = ['QUEUE_UNAVAILABLE', 'FLEET_CONFLICT', 'PROTOCOL_MISMATCH'].includes(code);
  const step = isWhole ? '' : ` ${hint}`;
  return `${code === 'INTERNAL' ? `${stack}\n` : ''}shellfleet: ${message}${step}\n`;
}

/**
 * Ends this worker if its supervisor ends before the worker is ready. A ready worker continues without a supervisor.
 */
function endWithoutSupervisor(): { becomeReady(): void } {
  const end = () => process.exit(1);
  process.once('disconnect', end);
  if (process.send !== undefined && !process.connected) end();
  return { becomeReady: () => void process.off('disconnect', end) };
}

/** Resolves when a signal asks this process to stop. A second signal, or an end that takes too long, exits at once. */
function untilAskedToStop(): Promise<Stop> {
  const asked = Promise.withResolvers<Stop>();
  let stopping = false;
  const stop = (how: Stop) => {
    if (stopping) process.exit(1);
    stopping = true;
    setTimeout(() => process.exit(1), GRACE_MS + EXIT_MS).unref();
    asked.resolve(how);
  };
  process.on('SIGTERM', () => stop('hand-over'));
  process.on('SIGINT', () => stop('end'));
  return asked.promise;
}

async function run({ admission, sweepTimes }: WorkerParts): Promise<void> {
  // A signal during the start waits until the sandboxes of an earlier worker are found, because SIGINT ends them too.
  const asked = untilAskedToStop();
  const given = readConfig();
  const logSink = given.logSink && new LogSink(given.logSink);
  const log = openLog(given.logLevel, (line) => logSink?.push(line));
  const { logger } = log;
  logSink?.reportTo(logger);
  const ruleFiles = new RuleFiles(given.file.rules, logger);
  const { services, tools, signatures, directory, tracing } = await openServices(given, VERSION, log, logSink);
  const { settings, sandboxes, audit, hostId } = services;
  const missingRuntimes = sandboxes.missingRuntimes?.() ?? [];
  const { unchecked } = settings.file.allow;
  const allRules = decideByRules(ruleFiles, { unchecked, onReported: noteReported(logger, audit) });
  const rules = requireFleetRules(allRules, ruleFiles);
  const worker = await createWorker(services, {
    ...{ tools, sweepTimes },
    offer: toOffer(settings, missingRuntimes, await sandboxes.limits?.()),
    admission: (answers) => admission ?? createAdmission({ signatures, rules, answers }),
    decideTool: rules.decideTool,
    useFleetRules: (fleetRules) => ruleFiles.useFleetRules(fleetRules),
    checkAnswer: auditAnswers(audit),
    warnings: () => [...ruleFiles.warnings, ...missingRuntimes.map(describeMissing)],
    onReplaced: () => {
      logger.fatal('worker.replaced');
      process.exit(1);
    },
    // The shells stay alive. The next process serves them when Redis is again that of their fleet.
    onOtherFleet({ message }) {
      logger.fatal({ problem: message }, 'worker.other-fleet');
      process.stderr.write(`shellfleet: ${message}\n`);
      process.exit(1);
    },
  });
  ruleFiles.watch(() => worker.admissionChanged());
  if (settings.file.rules.length > 0) process.on('SIGHUP', () => ruleFiles.reload());
  void asked.then(async (how) => {
    ruleFiles.close();
    await worker.close(how, GRACE_MS);
    await Promise.all(services.sinks.map((sink) => sink.close()));
    await directory.close();
    await tracing?.end(TRACES_MS);
    process.exit(0);
  });
  // `up` and supervisors wait for this message. A signal may follow at once.
  process.send?.({ type: 'ready', hostId });
}

function toOffer(config: WorkerConfig, missingRuntimes: readonly string[], limits: HostLimits = {}): HostOffer {
  const { users, uids, images, workspaces, redactFormats } = config;
  const { modes, networks, hosts, runtimes } = config.file.allow;
  return {
    ...{ modes, networks, hosts, users, images, workspaces, redactFormats },
    runtimes: runtimes.filter((runtime) => !missingRuntimes.includes(runtime)),
    ownUids: uids !== undefined,
    cluster: offeredByCluster(config),
    kept: config.keep.containers,
    ...toSessionBounds(config),
    ...{ controlGroups: limits.controlGroups ?? true, diskQuota: limits.diskQuota ?? true },
  };
}

const describeMissing = (runtime: string) =>
  `The Docker engine of this host does not have the runtime ${runtime}, which allow.runtimes lists: install it there and restart the worker.`;

/** Records reported decisions (RULES-3). */
function noteReported(logger: Logger, audit: Audit): (decision: ReportedDecision) => void {
  return ({ input: { tenant, session, generation, entryId: entry }, requirement, rules }) => {
    logger.info(
      { [ATTRIBUTES.commandId]: toCommandId(session, entry), decision: requirement, rules },
      'rules.reported',
    );
    audit.note(tenant, () => ({ type: 'reported', session, generation, entry, decision: requirement, rules }));
  };
}

function offeredByCluster({ policies, kubernetes }: WorkerConfig): HostOffer['cluster'] {
  if (kubernetes === undefined || !policies.includes('kubernetes')) return undefined;
  const { runtimeClasses, resources, podPidsLimit, unenforced, egress } = kubernetes;
  return { runtimeClasses, resources, podPidsLimit, unenforced, egress: egress !== undefined };
}
