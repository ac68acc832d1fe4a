import type { Row } from '../rows/row.ts';
import { readCpuUs } from './process-usage.ts';
import type { RedisProbe } from './redis-probe.ts';

/** Costs of one round of queued commands, per command. */
export interface LoadFigures {
  commandsPerSecond: number;
  /** undefined for a row without Redis */
  redisCpuUs: number | undefined;
  producerCpuUs: number;
  /** undefined when the working process is not the bench's own, or cannot be inspected */
  workerCpuUs: number | undefined;
}

export async function measureLoad(
  row: Row,
  probe: RedisProbe | undefined,
  sessions: number,
  perSession: number,
): Promise<LoadFigures> {
  const before = await readCpu(row, probe);
  const from = performance.now();
  await row.many(sessions, perSession);
  const tookMs = performance.now() - from;
  const after = await readCpu(row, probe);
  const commands = sessions * perSession;
  return {
    commandsPerSecond: (commands / tookMs) * 1_000,
    redisCpuUs: perCommand(before.redis, after.redis, commands),
    producerCpuUs: (after.producer - before.producer) / commands,
    workerCpuUs: perCommand(before.worker, after.worker, commands),
  };
}

async function readCpu(row: Row, probe: RedisProbe | undefined) {
  const worker = await readCpuUs(row.workerPid);
  const { user, system } = process.cpuUsage();
  return { worker, producer: user + system, redis: await probe?.cpuUs() };
}

function perCommand(before: number | undefined, after: number | undefined, commands: number): number | undefined {
  return before === undefined || after === undefined ? undefined : (after - before) / commands;
}
