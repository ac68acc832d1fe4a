/** Body of a failure, of kind Status, as the API server of Kubernetes writes it. */
export interface FailureStatus {
  kind: 'Status';
  apiVersion: 'v1';
  metadata: { continue?: string };
  status: 'Failure';
  message: string;
  reason: string;
  details?: FailureDetails;
  code: number;
}

interface FailureDetails {
  name?: string;
  group?: string;
  kind?: string;
  uid?: string;
  causes?: Partial<FieldCause>[];
  retryAfterSeconds?: number;
}

/** One field of an object that validation refuses. */
export interface FieldCause {
  reason: string;
  message: string;
  field: string;
}

/** Resource of an API group, by which failures name an object. */
export interface ResourceName {
  group: string;
  resource: string;
  kind: string;
}

/** Reply that refuses a request. */
export class ApiFailure extends Error {
  readonly body: FailureStatus;

  constructor(code: number, reason: string, message: string, details?: FailureDetails, continuation?: string) {
    super(message);
    const metadata = continuation === undefined ? {} : { continue: continuation };
    this.body = { kind: 'Status', apiVersion: 'v1', metadata, status: 'Failure', message, reason, code };
    if (details) this.body = { ...this.body, details, code };
  }
}

export const unauthorized = () => new ApiFailure(401, 'Unauthorized', 'Unauthorized');

export const badRequest = (message: string) => new ApiFailure(400, 'BadRequest', message);

export const unknownPath = () =>
  new ApiFailure(404, 'NotFound', 'the server could not find the requested resource', {});

export const methodNotAllowed = () =>
  new ApiFailure(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});

export const unsupportedMediaType = (message: string) => new ApiFailure(415, 'UnsupportedMediaType', message);

export const expired = (message: string, continuation?: string) =>
  new ApiFailure(410, 'Expired', message, undefined, continuation);

/** Refusal of a revision that the server has not reached yet. */
export function tooLarge(wanted: number, current: number): ApiFailure {
  return new ApiFailure(504, 'Timeout', `Timeout: Too large resource version: ${wanted}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

export const internalError = (message: string) =>
  new ApiFailure(500, 'InternalError', `Internal error occurred: ${message}`, {
    causes: [{ message }],
  });

export const forbiddenPath = (message: string) => new ApiFailure(403, 'Forbidden', `forbidden: ${message}`, {});

export function forbidden(type: ResourceName, name: string, why: string): ApiFailure {
  const about = name === '' ? qualified(type) : `${qualified(type)} "${name}"`;
  return new ApiFailure(403, 'Forbidden', `${about} is forbidden: ${why}`, detailsOf(type, name));
}

export function notFound(type: ResourceName, name: string): ApiFailure {
  return new ApiFailure(404, 'NotFound', `${qualified(type)} "${name}" not found`, detailsOf(type, name));
}

export function alreadyExists(type: ResourceName, name: string): ApiFailure {
  return new ApiFailure(409, 'AlreadyExists', `${qualified(type)} "${name}" already exists`, detailsOf(type, name));
}

export function conflict(type: ResourceName, name: string, why: string): ApiFailure {
  const message = `Operation cannot be fulfilled on ${qualified(type)} "${name}": ${why}`;
  return new ApiFailure(409, 'Conflict', message, detailsOf(type, name));
}

export const MODIFIED = 'the object has been modified; please apply your changes to the latest version and try again';

export function invalid(type: ResourceName, name: string, causes: readonly FieldCause[]): ApiFailure {
  const lines = causes.map(({ field, message }) => `${field}: ${message}`);
  const kind = type.group === '' ? type.kind : `${type.kind}.${type.group}`;
  const message = `${kind} "${name}" is invalid: ${lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`}`;
  const details = { ...detailsOf(type, name), kind: type.kind, causes: [...causes] };
  return new ApiFailure(422, 'Invalid', message, details);
}

/** Returns a resource as failures write it, such as `pods` or `leases.coordination.k8s.io`. */
function qualified({ group, resource }: ResourceName): string {
  return group === '' ? resource : `${resource}.${group}`;
}

function detailsOf({ group, resource }: ResourceName, name: string): FailureDetails {
  return { ...(name !== '' && { name }), ...(group !== '' && { group }), kind: resource };
}

/** Builds the causes of {@link invalid}, with the words of the real validation. */
export const field = {
  required: (path: string, detail = ''): FieldCause => ({
    reason: 'FieldValueRequired',
    message: detail === '' ? 'Required value' : `Required value: ${detail}`,
    field: path,
  }),
  invalid: (path: string, value: unknown, detail: string): FieldCause => ({
    reason: 'FieldValueInvalid',
    message: `Invalid value: ${JSON.stringify(value)}: ${detail}`,
    field: path,
  }),
  unsupported: (path: string, value: unknown, supported: readonly string[]): FieldCause => ({
    reason: 'FieldValueNotSupported',
    message: `Unsupported value: ${JSON.stringify(value)}: supported values: ${supported.map((one) => `"${one}"`).join(', ')}`,
    field: path,
  }),
  notFound: (path: string, value: unknown): FieldCause => ({
    reason: 'FieldValueNotFound',
    message: `Not found: ${JSON.stringify(value)}`,
    field: path,
  }),
  duplicate: (path: string, value: unknown): FieldCause => ({
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: ${JSON.stringify(value)}`,
    field: path,
  }),
  forbidden: (path: string, detail: string): FieldCause => ({
    reason: 'FieldValueForbidden',
    message: `Forbidden: ${detail}`,
    field: path,
  }),
};
