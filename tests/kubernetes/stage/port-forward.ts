import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Kubectl } from './kubectl.ts';

const PAUSE_MS = 500;
const UP_WITHIN_MS = 30_000;

/** A forwarded port. It is forwarded again when kubectl ends, for example since the connection broke. */
export class PortForward implements AsyncDisposable {
  readonly #kubectl: Kubectl;
  readonly #args: readonly string[];
  readonly #closing = new AbortController();
  #child: ChildProcess | undefined;
  #running: Promise<void> = Promise.resolve();

  private constructor(kubectl: Kubectl, args: readonly string[]) {
    this.#kubectl = kubectl;
    this.#args = args;
  }

  /** Resolves when the port is forwarded. Throws with what kubectl printed. */
  static async open(kubectl: Kubectl, service: string, from: number, to: number): Promise<PortForward> {
    const forward = new PortForward(kubectl, ['port-forward', '--address=127.0.0.1', service, `${from}:${to}`]);
    let said = '';
    const up = new Promise<void>((resolve) => {
      forward.#running = forward.#run((text) => {
        said += text;
        if (said.includes('Forwarding from')) resolve();
      });
    });
    await Promise.race([up, delay(UP_WITHIN_MS, undefined, { ref: false })]);
    if (said.includes('Forwarding from')) return forward;
    await forward[Symbol.asyncDispose]();
    throw new Error(`kubectl port-forward ${service}: ${said.trim() || 'no reply'}`);
  }

  async #run(onText: (text: string) => void): Promise<void> {
    while (!this.#closing.signal.aborted) {
      const { program, args } = this.#kubectl.command(this.#args);
      this.#child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
      for (const stream of [this.#child.stdout, this.#child.stderr])
        stream?.on('data', (data: Buffer) => onText(data.toString()));
      await once(this.#child, 'exit');
      await delay(PAUSE_MS, undefined, { signal: this.#closing.signal }).catch(() => {});
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    this.#child?.kill();
    await this.#running;
  }
}
