import { existsSync } from 'node:fs';
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

const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
/** Memory is charged in batches, so the peak may be a little below the limit. */
const PEAK_BELOW_BYTES = 2 ** 20;
type Controller = (typeof CONTROLLERS)[number];

export class Version1 implements ControlGroups {
  readonly #top: string;
  readonly #below: string;

  constructor(top: string, below: string) {
    this.#top = top;
    this.#below = below;
  }

  async create(name: string, { memoryBytes, cpus, pids }: GroupLimits): Promise<string[]> {
    for (const controller of CONTROLLERS) {
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
    return CONTROLLERS.map((controller) => `${controller}=${this.#directory(controller, name)}`);
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

  /** Reads the count of the controller `cpuacct`, which most systems mount together with `cpu`. */
  async processorMs(name: string): Promise<number | undefined> {
    const nanos = await readFile(`${this.#directory('cpu', name)}/cpuacct.usage`, 'utf8').catch(() => undefined);
    return nanos === undefined ? undefined : Number(nanos) / 1e6;
  }

  async remove(name: string): Promise<void> {
    for (const controller of CONTROLLERS) await removeGroup(this.#directory(controller, name));
  }

  async names(): Promise<string[]> {
    const names = await Promise.all(CONTROLLERS.map((controller) => listGroups(this.#directory(controller))));
    return [...new Set(names.flat())];
  }

  async close(): Promise<void> {
    for (const controller of CONTROLLERS) {
      await removeEmptyParents(this.#directory(controller), `${this.#top}/${controller}`);
    }
  }

  #directory(controller: Controller, name?: string): string {
    const parent = `${this.#top}/${controller}/${this.#below}`;
    return name === undefined ? parent : `${parent}/${name}`;
  }
}
