/** Error that ends set-up, with the missing part and a one-line fix. The user sees it unchanged. */
export class SetupError extends Error {
  readonly fix: string;

  constructor(message: string, fix: string, options?: ErrorOptions) {
    super(`${message}\n  Fix: ${fix}`, options);
    this.name = 'SetupError';
    this.fix = fix;
  }
}
