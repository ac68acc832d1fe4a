export {
  type AuditChainOf,
  type AuditKey,
  auditKeys,
  CHAIN_START,
  parseAuditLine,
  toAuditLine,
} from './audit/audit-line.ts';
export { hostDirectoryName } from './audit/host-directory.ts';
export { RemovalMarks, type RemovedRecords } from './audit/removal-marks.ts';
export { openAuditRecords } from './audit/sealed-records.ts';
export {
  AuditCheck,
  type AuditFinding,
  type AuditSegment,
  isTampering,
  type VerifiedChain,
  verifyAudit,
} from './audit/verify-audit.ts';
export { type EgressStatement, egressKeyOf, MOST_TOKEN_CHARS, signEgress, verifyEgress } from './egress-token.ts';
export { type LinkKeys, linkKeysOf, pskOf } from './link-keys.ts';
export { createKeylessSealer, createSealer, createSealKey, type Sealer, sealMarkOf } from './seal.ts';
export { type SealPlace, sealPlace } from './seal-place.ts';
export {
  checkInputEnd,
  type InputEnd,
  isSignedClose,
  isSignedToolCancel,
  signCancel,
  signClose,
  signedReason,
  signInputEnd,
  signToolCancel,
} from './signatures/requests.ts';
export type { Signature } from './signatures/signed-value.ts';
export { createSigner } from './signatures/signer.ts';
export { keyIdOf, parsePrivateKey, parsePublicKey } from './signatures/signing-keys.ts';
export { createVerifier, type KnownKey, type KnownKeys, unauthorized, type Verifier } from './signatures/verifier.ts';
