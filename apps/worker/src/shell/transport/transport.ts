// A way to the keeper: bytes in both directions. Which one a container uses is fixed when it is created.
export interface Transport {
  /** Given over attach: frames carry it. */
  readonly sync?: Uint8Array;
  /** To be called once; what came before is delivered first. `closed` comes once, and nothing after it. */
  open(events: { data(bytes: Uint8Array): void; closed(): void }): void;
  write(bytes: Uint8Array): void;
  pause(): void;
  resume(): void;
  close(): void;
}
