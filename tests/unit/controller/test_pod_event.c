/* test_pod_event.c - which of a pod's events is told. */
/* SPDX-License-Identifier: MIT */
#include "controller/pod_event.h"

#include "base/text.h"
#include "pods.h"

#include <stdio.h>

#define EVENT(type, reason, text, uid, times)                                                                      \
	"{'type':'" type "','reason':'" reason "','message':'" text "','involvedObject':{'uid':'" uid "'}," times  \
	"}"
#define LAST(second)         "'lastTimestamp':'2026-01-01T00:00:" second "Z'"
#define AT(second)           "'lastTimestamp':null,'eventTime':'2026-01-01T00:00:" second ".000000Z'"
#define AGAIN(second)        "'series':{'lastObservedTime':'2026-01-01T00:00:" second ".123456Z'}," LAST("01")
#define MADE(second)         "'metadata':{'creationTimestamp':'2026-01-01T00:00:" second "Z'}"
#define LIST(events)         "{'kind':'EventList','items':[" events "]}"
#define LIST2(first, second) LIST(first "," second)
#define SANDBOX(text, times) EVENT("Warning", "FailedCreatePodSandBox", text, "pod-1", times)
#define MOUNT(text, times)   EVENT("Warning", "FailedMount", text, "pod-1", times)

static void
test_the_newest_warning_of_the_pod_is_told(void **state)
{
	static const struct {
		const char *list, *words;
	} cases[] = {
		{ "{}", "" },
		{ "{'items':{}}", "" },
		{ LIST("1,null,{}"), "" },
		{ LIST(SANDBOX("no network", LAST("01"))), "FailedCreatePodSandBox: no network" },
		/* whatever their order */
		{ LIST2(SANDBOX("a", LAST("02")), MOUNT("b", LAST("01"))), "FailedCreatePodSandBox: a" },
		{ LIST2(SANDBOX("a", LAST("01")), MOUNT("b", LAST("02"))), "FailedMount: b" },
		/* whichever times they have */
		{ LIST2(MOUNT("again", AGAIN("09")), SANDBOX("once", AT("05"))), "FailedMount: again" },
		{ LIST2(MOUNT("older", MADE("01")), SANDBOX("a", AT("05"))), "FailedCreatePodSandBox: a" },
		{ LIST(MOUNT("without a time", "'count':1")), "FailedMount: without a time" },
		/* not those */
		{ LIST(EVENT("Normal", "Pulling", "pulls", "pod-1", LAST("09"))), "" },
		{ LIST(EVENT("Warning", "FailedMount", "of another life", "pod-0", LAST("09"))), "" },
		{ LIST2(EVENT("Warning", "FailedScheduling", "no node", "pod-1", LAST("09")),
			  MOUNT("b", LAST("01"))),
			"FailedMount: b" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		AUTO_JSON struct json_object *list = pods_json(cases[i].list);
		char words[POD_EVENT_WORDS_SIZE];

		pod_event_newest(list, "pod-1", words);
		assert_string_equal(words, cases[i].words);
	}
	pod_event_newest(NULL, "pod-1", (char[POD_EVENT_WORDS_SIZE]){ 0 });
}

static void
test_long_words_are_cut_between_characters(void **state)
{
	char text[1000] = "", list_text[2000], words[POD_EVENT_WORDS_SIZE];
	AUTO_JSON struct json_object *list = NULL;

	(void)state;
	for (size_t i = 0; i + 3 < sizeof text; i += 3)
		memcpy(text + i, "\xe2\x82\xac", 3);
	snprintf(list_text, sizeof list_text,
		LIST("{'type':'Warning','reason':'Long','message':'%s','involvedObject':{'uid':'pod-1'}}"), text);
	list = pods_json(list_text);
	pod_event_newest(list, "pod-1", words);
	assert_true(strlen(words) > 300);
	assert_true(text_utf8_whole(words, strlen(words)) == strlen(words));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_newest_warning_of_the_pod_is_told),
		cmocka_unit_test(test_long_words_are_cut_between_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
