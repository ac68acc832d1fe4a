import { type InboxNotice, parseInboxMessage } from '@shellfleet/mailbox';
import { inboxChannel } from '@shellfleet/protocol';
import type { Receiver, Subscriber } from './subscriber.ts';

export interface NoticeReceiver {
  onEnded(notice: InboxNotice): void;
  /** The sealed answer to a question, or the sealed result of a tool call (empty when it has to be read). */
  onAnswer(questionId: string, sealed: string): void;
  /** Notices may have been dropped. */
  onGap(): void;
}

interface Inbox {
  receiver: Receiver;
  opened: Promise<void>;
}

/** The inboxes of this process, one per namespace. Notices are hints: a lost one causes only a delay, because results are also looked up. */
export class Inboxes {
  readonly #subscriber: Subscriber;
  readonly #inboxId: string;
  readonly #inboxes = new Map<string, Inbox>();

  constructor(subscriber: Subscriber, inboxId: string) {
    this.#subscriber = subscriber;
    this.#inboxId = inboxId;
  }

  /** Receives from now on what comes to the inbox of a namespace. Resolves when no answer is missed. Further calls return the same promise. */
  open(namespace: string, receiver: NoticeReceiver): Promise<void> {
    const known = this.#inboxes.get(namespace);
    if (known !== undefined) return known.opened;
    const raw: Receiver = {
      onMessage: (message) => dispatch(message, receiver),
      onGap: () => receiver.onGap(),
    };
    // An entry that was submitted before may have ended meanwhile.
    const opened = this.#subscriber.add(inboxChannel(namespace, this.#inboxId), raw).then(() => receiver.onGap());
    this.#inboxes.set(namespace, { receiver: raw, opened });
    return opened;
  }

  remove(namespace: string): void {
    const inbox = this.#inboxes.get(namespace);
    if (inbox === undefined) return;
    this.#inboxes.delete(namespace);
    this.#subscriber.remove(inboxChannel(namespace, this.#inboxId), inbox.receiver);
  }
}

function dispatch(text: string, receiver: NoticeReceiver): void {
  const message = parseInboxMessage(text);
  if (message?.type === 'notice') receiver.onEnded(message);
  else if (message?.type === 'answer') receiver.onAnswer(message.id, message.sealed);
}
