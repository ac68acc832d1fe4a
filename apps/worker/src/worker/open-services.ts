import { createHash } from 'node:crypto';
import { readAuditHeads } from '@shellfleet/mailbox';
import { fleetKeys } from '@shellfleet/protocol';
import { connectRedis, countCalls, describeRedis, refuseMissingPermissions } from '@shellfleet/redis';
import { createSealer, createSealKey } from '@shellfleet/sealing';
import type { Tracing } from '@shellfleet/vendor/opentelemetry';
import type { Redis } from 'ioredis';
import type { Signatures } from '../admission/create-admission.ts';
import type { Audit } from '../audit/audit.ts';
import { openAuditSink } from '../audit/audit-sink.ts';
import { openAudit } from '../audit/file-audit.ts';
import { openRedisAudit } from '../audit/redis-audit.ts';
import type { WorkerConfig } from '../config/config.ts';
import { HostMemory } from '../host/host-memory.ts';
import { readSessionImages } from '../host/session-image-names.ts';
import { openStateDirectory, readSealKey, type StateDirectory } from '../host/state-directory.ts';
import { openJournal } from '../journal/journal.ts';
import { watchRedisLosses } from '../journal/redis-losses.ts';
import { joinOwnFleet } from '../lease/own-fleet.ts';
import type { Logger } from '../log/logger.ts';
import type { WorkerLog } from '../log/open-log.ts';
import { MetricsRegistry } from '../metrics/metrics-registry.ts';
import { createWorkerMetrics } from '../metrics/worker-metrics.ts';
import { createOverflowLogs } from '../overflow-log/overflow-logs.ts';
import type { HostServices } from '../run/host-services.ts';
import { openPolicies } from '../sandbox/open-policies.ts';
import { chooseTransport } from '../shell/transport/choose-transport.ts';
import type { LogSink } from '../sink/log-sink.ts';
import { loadTools, type Tool } from '../tools/load-tools.ts';
import { toolMark } from '../tools/tool-host.ts';
import { openTracing } from '../tracing/open-tracing.ts';
import { askForSignatures } from './ask-for-signatures.ts';

/** Services of a host that does not take part in its fleet yet, and other findings of its start. */
export interface OpenServices {
  services: HostServices;
  /** Tools of the modules in the settings. */
  tools: readonly Tool[];
  signatures: Signatures;
  directory: StateDirectory;
  /** Export of spans, if the worker's environment asks for it. */
  tracing: Tracing | undefined;
}

/** Opens the state directory, the connection to Redis, the sandboxes, the logs and the audit of a host. */
export async function openServices(
  given: WorkerConfig,
  version: string,
  log: WorkerLog,
  logSink?: LogSink,
): Promise<OpenServices> {
  const { logger, recentLines } = log;
  const directory = await openStateDirectory(given.stateDirectory, given.hostId);
  const { hostId, hostKey } = directory;
  log.nameHost(hostId);
  const place = describeRedis(given.redisUrl);
  const connected = await connectRedis(given.redisUrl, 'host', `shellfleet-worker:${hostId}`);
  const { redis, history } = connected;
  const metrics = given.metrics && createWorkerMetrics(await MetricsRegistry.load());
  if (metrics !== undefined) countCalls(redis, metrics.redis);
  await refuseMissingPermissions(redis, place, given.namespace, hostId);
  const namespace = await joinOwnFleet(redis, given.namespace, directory.fleets, place);
  const settings = { ...given, namespace };
  if (!connected.persistent) logger.warn({ setting: 'appendonly' }, 'redis.not-persistent');
  const clockProblem = await connected.clockProblem;
  if (clockProblem !== undefined) logger.warn({ problem: clockProblem }, 'host.clock-off');
  const sessionImages = await readSessionImages(settings.stateDirectory, version);
  const hostMemory = new HostMemory(settings.leastFree.memoryBytes);
  const sealKeys = settings.sealKeys ?? [await readSealKey(settings.stateDirectory, createSealKey)];
  const [sandboxes, tools] = await Promise.all([
    chooseTransport(settings, directory, logger).then((transport) =>
      openPolicies({ ...settings, transport, sealKeys, sessionImages, hostMemory }, directory, logger),
    ),
    loadTools(settings.tools, settings.toolEnv, toolMark(namespace, hostId), logger),
  ]);
  const { retentionMs } = settings;
  const audit = await openAuditOf(settings, directory, { redis, boot: recentLines.boot, sealKeys, logger });
  const auditSink =
    settings.auditSink &&
    (await openAuditSink({
      ...{ target: settings.auditSink, directory: directory.audit, namespace, hostId, logger },
      heads: () => audit.heads(),
    }));
  const { verifier, signatures } = askForSignatures(settings.file.keys, audit, logger);
  // Done before this process begins its own journal file.
  const redisLosses = watchRedisLosses(directory.journal, history, retentionMs);
  const journal = openJournal({
    ...{ directory: directory.journal, retentionMs },
    onWriteFailed: (err) => logger.error({ err }, 'journal.append-failed'),
  });
  const tracing = await openTracing(given.tracing, { hostId, version }, logger);
  const services: HostServices = {
    ...{
      settings,
      hostId,
      boot: recentLines.boot,
      machine: digestOf(hostKey),
      version,
      namespace,
      fleet: fleetKeys(namespace),
    },
    ...{ connected, redis, sandboxes, audit, hostMemory, journal, redisLosses, metrics, logger, recentLines },
    sinks: [logSink, auditSink].filter((sink) => sink !== undefined),
    isTracing: tracing !== undefined,
    sealer: createSealer(sealKeys, { verifier }),
    overflowLogs: createOverflowLogs(directory.logs, settings.logs),
    batchDirectory: directory.batches,
  };
  return { services, tools, signatures, directory, tracing };
}

/** Opens the audit on the disk of this host, or in Redis, as the settings say. */
async function openAuditOf(
  { namespace, auditStore, file }: WorkerConfig,
  { hostId, stateDirectoryId, audit: directory }: StateDirectory,
  { redis, boot, sealKeys, logger }: { redis: Redis; boot: string; sealKeys: readonly string[]; logger: Logger },
): Promise<Audit> {
  const { retention: retentionMs, commands: noted, maxBytes } = file.audit;
  const options = { namespace, hostId, sealKeys, retentionMs, noted, logger };
  if (auditStore === 'redis')
    return openRedisAudit({ ...options, redis, boot, sealer: createSealer(sealKeys), maxBytes });
  const anchored = await readAuditHeads(redis, namespace, hostId);
  return openAudit({ ...options, directory, stateDirectoryId, anchored });
}

const digestOf = (hostKey: Buffer) => createHash('sha256').update(hostKey).digest('hex').slice(0, 16);
