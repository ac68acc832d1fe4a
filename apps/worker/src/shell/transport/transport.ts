// Bytes to and from a keeper. The transport of a container is chosen when it is created.
export interface Transport {
  /** Sync word before each frame, only over attach. */
  readonly sync?: Uint8Array;
  /** Sets the handlers, once. Earlier bytes are delivered first. `closed` is called once, last. */
  open(events: { data(bytes: Uint8Array): void; closed(): void }): void;
  write(bytes: Uint8Array): void;
  pause(): void;
  resume(): void;
  close(): void;
}
