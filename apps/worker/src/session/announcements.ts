import type { EventType } from '@shellfleet/protocol';
import type { SessionContext } from '../run/session-context.ts';

/** Reports the state of a session's shell to the mailbox, for the next owner, and as events in the stream. */
export class Announcements {
  readonly #context: SessionContext;
  #epoch: number;

  /** `epoch` is the last epoch that was announced by an earlier owner or process. */
  constructor(context: SessionContext, epoch: number) {
    this.#context = context;
    this.#epoch = epoch;
  }

  /** Reports that a sandbox is being created. */
  starting(): Promise<void> {
    return this.#store('starting');
  }

  /** Reports what the start of the sandbox waits for, in the words of the cluster; undefined when that is over. */
  async waits(words: string | undefined): Promise<void> {
    await this.#store('starting', undefined, {}, words);
  }

  /** Reports that entries can start on the shell. A new shell is also an event. */
  ready(): Promise<void> {
    const { epoch } = this.#context.shell;
    if (epoch === this.#epoch) return this.#store('ready');
    return this.#announce(epoch === 1 ? 'session.opened' : 'session.restarted');
  }

  /** Reports that a living shell was adopted, which `previousHost` had before. */
  adopted(previousHost: string | undefined): Promise<void> {
    const isMoved = previousHost !== undefined && previousHost !== this.#context.owner.host;
    return this.#announce('session.adopted', isMoved ? { previousHostId: previousHost } : {});
  }

  /** Reports that the shell of an earlier owner is gone. */
  lost(data: { reason: string; hostId: string | undefined }): Promise<void> {
    return this.#store('starting', 'session.lost', data);
  }

  #announce(type: EventType, more: { previousHostId?: string } = {}): Promise<void> {
    const { owner, logger } = this.#context;
    const { epoch, ready, image, sandbox } = this.#context.shell;
    const node = sandbox?.node;
    this.#epoch = epoch;
    logger.info({ epoch }, type);
    return this.#store(ready ? 'ready' : 'starting', type, {
      hostId: owner.host,
      epoch,
      ...(image === undefined ? {} : { image: image.name, imageDigest: image.digest }),
      ...(node !== undefined && { node }),
      ...more,
    });
  }

  async #store(
    status: 'starting' | 'ready',
    type?: EventType,
    data: Record<string, unknown> = {},
    waitsFor?: string,
  ): Promise<void> {
    const { mailbox, redaction } = this.#context;
    const { epoch, epochBase, image, start, sandbox } = this.#context.shell;
    const event = type === undefined ? undefined : { type, data: redaction.value(data) };
    const id = status === 'ready' ? (sandbox?.id ?? '') : '';
    const placed = { sandbox: id, node: sandbox?.node, waitsFor };
    await mailbox.announce({ epoch, epochBase, status, image, start, ...placed }, event);
  }
}
