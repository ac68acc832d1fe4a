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

const CONTROLLERS = ['cpu', 'memory', 'pids'];

/** Control groups of version 2: one tree, in which each group enables the controllers of its children. */
export class Version2 implements ControlGroups {
  readonly #top: string;
  readonly #parent: string;

  constructor(top: string, below: string) {
    this.#top = top;
    this.#parent = `${top}/${below}`;
  }

  async create(name: string, { memoryBytes, cpus, pids }: GroupLimits): Promise<string[]> {
    await makeGroup(this.#parent);
    await this.#switchOn();
    const directory = `${this.#parent}/${name}`;
    await makeGroup(directory);
    await setValue(directory, 'memory.max', memoryBytes);
    await setValueIfThere(directory, 'memory.swap.max', 0);
    await setValue(directory, 'pids.max', pids);
    await setValue(directory, 'cpu.max', `${Math.round(cpus * CPU_PERIOD_MICROS)} ${CPU_PERIOD_MICROS}`);
    return [`=${directory}`];
  }

  async memoryEvents(name: string): Promise<MemoryEvents> {
    const path = `${this.#parent}/${name}/memory.events`;
    return { kills: await readCounter(path, 'oom_kill'), atLimit: (await readCounter(path, 'oom')) > 0 };
  }

  async processorMs(name: string): Promise<number | undefined> {
    const text = await readFile(`${this.#parent}/${name}/cpu.stat`, 'utf8');
    const micros = /^usage_usec (\d+)$/m.exec(text)?.[1];
    return micros === undefined ? undefined : Number(micros) / 1_000;
  }

  remove(name: string): Promise<void> {
    return removeGroup(`${this.#parent}/${name}`);
  }

  names(): Promise<string[]> {
    return listGroups(this.#parent);
  }

  close(): Promise<void> {
    return removeEmptyParents(this.#parent, this.#top);
  }

  /** Enables the controllers from the top down: a group can enable only those that its parent enabled for it. */
  async #switchOn(): Promise<void> {
    let directory = this.#top;
    for (const step of ['', ...this.#parent.slice(this.#top.length).split('/').filter(Boolean)]) {
      directory = step === '' ? directory : `${directory}/${step}`;
      const on = (await readFile(`${directory}/cgroup.subtree_control`, 'utf8')).trim().split(/\s+/);
      const off = CONTROLLERS.filter((controller) => !on.includes(controller));
      if (off.length > 0)
        await setValue(directory, 'cgroup.subtree_control', off.map((controller) => `+${controller}`).join(' '));
    }
  }
}
