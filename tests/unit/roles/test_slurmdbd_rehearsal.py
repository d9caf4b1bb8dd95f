from tests.unit.roles.loading import load_module

rehearsal = load_module("roles/slurmdbd/library/slurmdbd_rehearsal.py")


def test_jobs_and_associations_are_counted_and_usage_is_summed_up_to_what_there_was() -> None:
    tables = ["c_job_table", "c_assoc_table", "c_assoc_usage_hour_table", "c_step_table", "user_table"]
    asked = rehearsal.counting(tables, {"c_assoc_usage_hour_table": 3600})
    assert asked == {
        "c_job_table": "select count(*) from `c_job_table`",
        "c_assoc_table": "select count(*) from `c_assoc_table`",
        "c_assoc_usage_hour_table": (
            "select coalesce(sum(alloc_secs), 0) from `c_assoc_usage_hour_table` where time_start <= 3600"
        ),
    }
