import { announce, type Owner, retryWhileRedisIsDown } from '@shellfleet/mailbox';
import type { EventType } from '@shellfleet/protocol';
import type { Logger } from 'pino';
import type { SessionRedaction } from '../redaction/session-redaction.ts';
import type { SessionShell } from '../shell/session-shell.ts';

export interface AnnouncementsDeps {
  owner: Owner;
  shell: SessionShell;
  redaction: SessionRedaction;
  /** Aborts when this host must not write the session any more. */
  signal: AbortSignal;
  onFenced(): void;
  logger: Logger;
}

/** What a session says of its shell: to the mailbox, for the next owner, and to whoever reads its stream. */
export class Announcements {
  readonly #deps: AnnouncementsDeps;
  #epoch: number;

  /** `epoch`: announced by an earlier owner, or an earlier life of this worker. */
  constructor(deps: AnnouncementsDeps, epoch: number) {
    this.#deps = deps;
    this.#epoch = epoch;
  }

  /** A sandbox is being made. */
  starting(): Promise<void> {
    return this.#say('starting');
  }

  /** Something can be started on the shell now; of a new one its users are told. */
  ready(): Promise<void> {
    const { epoch } = this.#deps.shell;
    if (epoch === this.#epoch) return this.#say('ready');
    return this.#announce(epoch === 1 ? 'session.opened' : 'session.restarted');
  }

  /** A shell that lives from before was taken over. */
  adopted(): Promise<void> {
    return this.#announce('session.adopted');
  }

  /** The shell from before is gone. */
  lost(data: { reason: string; hostId: string | undefined }): Promise<void> {
    return this.#say('starting', 'session.lost', data);
  }

  #announce(type: EventType): Promise<void> {
    const { shell, owner, logger } = this.#deps;
    const { epoch } = shell;
    this.#epoch = epoch;
    logger.info({ epoch }, type);
    return this.#say(shell.ready ? 'ready' : 'starting', type, { hostId: owner.host, epoch });
  }

  async #say(status: 'starting' | 'ready', type?: EventType, data: Record<string, unknown> = {}): Promise<void> {
    const { owner, shell, redaction, signal, onFenced } = this.#deps;
    const { epoch, epochBase } = shell;
    const event = type === undefined ? undefined : { type, data: redaction.value(data) };
    const told = { epoch, epochBase, status, sandbox: status === 'ready' ? (shell.sandboxId ?? '') : '' };
    const said = await retryWhileRedisIsDown(() => announce(owner, told, event), signal);
    if (said.type === 'fenced') onFenced();
  }
}
