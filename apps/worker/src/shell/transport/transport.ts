// Bytes to and from a keeper. A container's transport is chosen when it is created.
export interface Transport {
  /** The sync word that begins each frame; only over attach. */
  readonly sync?: Uint8Array;
  /** To be called once. Bytes that arrived before are delivered first. `closed` is called once, last. */
  open(events: { data(bytes: Uint8Array): void; closed(): void }): void;
  write(bytes: Uint8Array): void;
  pause(): void;
  resume(): void;
  close(): void;
}
