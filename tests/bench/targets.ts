import type { Figures } from './figures.ts';

/** A target for ratios of one run. */
export interface Target {
  name: string;
  value: number;
  limit: number;
  /** whether the value may be at most the limit, or must be at least it */
  bound: 'at most' | 'at least';
  unit: string;
  passed: boolean;
}

export function judge({ rows, sessions }: Figures): Target[] {
  const { bullmq, shellfleet } = rows;
  const dockerExec = rows['docker-exec'];
  const idle = (row: typeof shellfleet) => row.idle['echo hi'].p50.median;
  const speed = (row: typeof shellfleet) => row.few.commandsPerSecond?.median ?? Number.NaN;
  const redisCpu = (row: typeof shellfleet) => row.many.redisCpuUs?.median ?? Number.NaN;
  const { worker, producer, unnamed } = sessions.connections;
  return [
    atMost('idle p50 of `echo hi`, against a BullMQ job', idle(shellfleet) / idle(bullmq), 2, '×'),
    atLeast('idle p50 of `echo hi`, faster than docker exec by', idle(dockerExec) / idle(shellfleet), 25, '×'),
    atLeast('commands/s of a few sessions, against docker exec', speed(shellfleet) / speed(dockerExec), 30, '×'),
    atMost(
      'Redis CPU per command, many sessions, against a BullMQ queue each',
      redisCpu(shellfleet) / redisCpu(bullmq),
      1,
      '×',
    ),
    // A connection without a name counts for both processes.
    atMost('Redis connections of a process, many sessions', Math.max(worker, producer) + unnamed, 5, ''),
    atMost('Redis memory of an idle session after one command', sessions.redisBytesPerIdleSession / 1_024, 12, 'KB'),
  ];
}

function atMost(name: string, value: number, limit: number, unit: string): Target {
  return { name, value, limit, bound: 'at most', unit, passed: value <= limit };
}

function atLeast(name: string, value: number, limit: number, unit: string): Target {
  return { name, value, limit, bound: 'at least', unit, passed: value >= limit };
}
