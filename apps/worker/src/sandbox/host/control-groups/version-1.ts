import { existsSync, realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ControlGroups, GroupLimits, MemoryEvents } from './control-groups.ts';
import {
  CPU_PERIOD_MICROS,
  listGroups,
  makeGroup,
  readCounter,
  removeEmptyParents,
  removeGroup,
  setValue,
  setValueIfThere,
} from './group-directory.ts';

const LIMITING = ['memory', 'pids', 'cpu'] as const;
/** Controller that counts processor time. Most systems mount it together with `cpu`. */
const COUNTING = 'cpuacct';
/** Memory is charged in batches, so the peak may be a little below the limit. */
const PEAK_BELOW_BYTES = 2 ** 20;
type Controller = (typeof LIMITING)[number] | typeof COUNTING;

export class Version1 implements ControlGroups {
  readonly #top: string;
  readonly #below: string;
  readonly #controllers: readonly Controller[];

  constructor(top: string, below: string) {
    this.#top = top;
    this.#below = below;
    this.#controllers = isMountedApart(top) ? [...LIMITING, COUNTING] : LIMITING;
  }

  async create(name: string, { memoryBytes, cpus, pids }: GroupLimits): Promise<string[]> {
    for (const controller of this.#controllers) {
      // If a controller is not mounted, a directory at its place would limit nothing.
      if (!existsSync(`${this.#top}/${controller}/cgroup.procs`))
        throw new Error(`there is no control group for ${controller} at ${this.#top}`);
      await makeGroup(this.#directory(controller, name));
    }
    const memory = this.#directory('memory', name);
    await setValue(memory, 'memory.limit_in_bytes', memoryBytes);
    // Equal to the memory limit: no swap. Some kernels do not count swap.
    await setValueIfThere(memory, 'memory.memsw.limit_in_bytes', memoryBytes);
    await setValue(this.#directory('pids', name), 'pids.max', pids);
    const cpu = this.#directory('cpu', name);
    await setValue(cpu, 'cpu.cfs_period_us', CPU_PERIOD_MICROS);
    await setValue(cpu, 'cpu.cfs_quota_us', Math.round(cpus * CPU_PERIOD_MICROS));
    return this.#controllers.map((controller) => `${controller}=${this.#directory(controller, name)}`);
  }

  async memoryEvents(name: string): Promise<MemoryEvents> {
    const directory = this.#directory('memory', name);
    const read = async (file: string) => Number(await readFile(`${directory}/${file}`, 'utf8'));
    const [kills, peak, limit] = await Promise.all([
      readCounter(`${directory}/memory.oom_control`, 'oom_kill'),
      read('memory.max_usage_in_bytes'),
      read('memory.limit_in_bytes'),
    ]);
    return { kills, atLimit: peak + PEAK_BELOW_BYTES >= limit };
  }

  async processorMs(name: string): Promise<number | undefined> {
    const controller = this.#controllers.includes(COUNTING) ? COUNTING : 'cpu';
    const nanos = await readFile(`${this.#directory(controller, name)}/cpuacct.usage`, 'utf8').catch(() => undefined);
    return nanos === undefined ? undefined : Number(nanos) / 1e6;
  }

  async remove(name: string): Promise<void> {
    for (const controller of this.#controllers) await removeGroup(this.#directory(controller, name));
  }

  async names(): Promise<string[]> {
    const names = await Promise.all(this.#controllers.map((controller) => listGroups(this.#directory(controller))));
    return [...new Set(names.flat())];
  }

  async close(): Promise<void> {
    for (const controller of this.#controllers) {
      await removeEmptyParents(this.#directory(controller), `${this.#top}/${controller}`);
    }
  }

  #directory(controller: Controller, name?: string): string {
    const parent = `${this.#top}/${controller}/${this.#below}`;
    return name === undefined ? parent : `${parent}/${name}`;
  }
}

/** Tells whether `cpuacct` has a hierarchy of its own, and is not another name for that of `cpu`. */
function isMountedApart(top: string): boolean {
  if (!existsSync(`${top}/${COUNTING}/cgroup.procs`) || !existsSync(`${top}/cpu/cgroup.procs`)) return false;
  return realpathSync(`${top}/${COUNTING}`) !== realpathSync(`${top}/cpu`);
}
