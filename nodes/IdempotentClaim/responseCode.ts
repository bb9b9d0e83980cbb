import type { ClaimAnswer } from '../../store/claim';
import type { ErrorKind } from '../../store/errors';

/** Success in the words of most senders; a preset may name another. */
const SUCCESS = 200;
/** "Come again later": the sender keeps its own copy of the delivery until it is told otherwise. */
const COME_AGAIN = 503;

/** The HTTP status with which the sender should be answered. Source: the contract's `responseCode`. */
export function responseCodeOf(answer: ClaimAnswer, successCode = SUCCESS): number {
	switch (answer.verdict) {
		case 'new':
			return successCode;
		case 'duplicate':
			if (answer.reason === 'completed') return successCode;
			if (answer.reason === 'retry_pending') return answer.record.operation === 'receive' ? successCode : COME_AGAIN;
			// What is stored whole can be finished without the sender.
			return answer.record.payloadComplete ? successCode : COME_AGAIN;
		case 'error':
			return responseCodeOfError(answer.error.kind);
	}
}

function responseCodeOfError(kind: ErrorKind): number {
	if (kind === 'missing_delivery_id' || kind === 'invalid_delivery_id') return 400;
	return kind === 'payload_mismatch' ? 422 : COME_AGAIN;
}
