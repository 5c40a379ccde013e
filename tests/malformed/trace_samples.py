"""A small valid file of every trace format that is delimited text, in the source's own layout."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from grids import grid
from samples import Sample, counting, counting_lines, reading_trace

if TYPE_CHECKING:
    from grids import Grid

_NATIVE = """\
job_id,submit_time,start_time,end_time,duration,estimate,num_gpus,num_tasks,user,status,note
j1,0,5,65,60,100,1,1,anna,completed,"a, b"
j2,10,10,71.5,61.5,,2,1,jürgen,failed,"said ""no"" twice"
j3,20,,,,3600,0.5,1,,pending,
j4,30,31,93,62,100,8,2,李雷,running,x
j5,40.25,45,108,63,100,16,4,anna,completed,
j6,50,55,119,64,,1,,bob,cancelled,y
"""
_SWF = """\
; Version: 2.2
; Computer: Größe 7
; MaxProcs: 128
; UnixStartTime: 1020000000
; TimeZoneString: Europe/Berlin
1 0 5 60 4 -1 -1 4 100 -1 1 2 1 -1 1 1 -1 -1
2 10 0 61 1 30.5 1024 1 100 2048 0 3 1 7 1 1 -1 -1
3 20 -1 -1 -1 -1 -1 8 3600 -1 5 2 1 7 2 1 -1 -1
4 30 5 62 4 -1 -1 4 100 -1 1 2 1 -1 1 1 1 60
5 40 5 63 2 -1 -1 -1 -1 -1 1 4 2 -1 1 1 -1 -1
6 50 5 64 2 -1 -1 -1 -1 -1 1 4 2 -1 1 1 -1 -1
"""
_SHOCKWAVE = "".join(
    f"{kind}\tpython3 main.py\t{at}\t--steps\t1\t{steps}\t{gpus}\t{mode}\t1\t-1.0\t900\t{at}\n"
    for kind, steps, gpus, mode, at in [
        ("LM (batch size 10)", 134583, 1, "gns", 0),
        ("ResNet-18 (batch size 32)", 143450, 1, "accordion", 55),
        ("ResNet-50 (batch size 64)", 41840, 2, "static", 64),
        ("Recommendation (batch size 512)", 9000, 1, "accordion", 70),
        ("Transformer (batch size 16)", 20000, 2, "static", 90),
        ("LM (batch size 80)", 30000, 4, "gns", 120),
    ]
)
_POLLUX = """\
name,time,application,num_replicas,batch_size
cifar10-0,107,cifar10,6,2048
deepspeech2-1,110,deepspeech2,6,320
ncf-2,135,ncf,1,32768
bert-3,140,bert,4,96
yolov3-4,141,yolov3,2,32
imagenet-5,150,imagenet,16,1600
"""
_GAVEL = """\
ResNet-18 (batch size 64)\tpython3 main.py --data_dir=%s/é\tcifar10\t--num_steps\t1\t1646\t8\t1\t-1.000000\t0
LM (batch size 5)\tpython main.py --data %s\tlm\t--steps\t1\t95121\t1\t5\t1.200000\t326.114764
A3C\tpython3 main.py --workers 4\trl\t--max-steps\t0\t3000\t1\t1\t-1.000000\t400.500000
CycleGAN\tpython3 cyclegan.py\tgan\t--n_steps\t1\t17\t1\t1\t10.000000\t401.000000
Own model\tpython3 own.py\town\t-n\t1\t500\t64\t1\t2.000000\t500.000000
Transformer (batch size 16)\tpython3 train.py\ttr\t-step\t1\t343170\t2\t1\t-1.000000\t652.229528
"""  # noqa: E501 - records of a file
_PHILLY = """\
timestamp,duration,num_gpus,gpu_time,cluster
2017-10-01 07:00:00,60.0,1,60.0,6214e9
2017-10-01 08:00:00,61.5,8,492.0,6c71a0
2017-10-02 07:30:00,62.0,2,124.0,"é, ü"
2017-11-05 01:30:00,63.0,4,252.0,6c71a0
2017-11-06 07:00:00,64.0,1,64.0,
2017-11-07 07:00:00,65.0,1,65.0,ed69ec
"""
_OPENB = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,\
scheduled_time
openb-pod-0000,12000,16384,1,1000,,LS,Running,0,12537496,0
openb-pod-0001,6000,12288,1,460,,LS,Running,427061,12902960,427061
openb-pod-0002,88000,327680,8,1000,V100M16|V100M32,LS,Succeeded,800000,900000,800010
openb-pod-0003,4000,1024,0,0,,BE,Failed,900000,900100,900050
openb-pod-0004,4000,1024,1,500,T4,Burstable,Pending,950000,960000,
"""
_OPENB_NODES = """\
sn,cpu_milli,memory_mib,gpu,model
openb-node-0227,32000,262144,0,
openb-node-0228,32000,262144,0,
openb-node-0229,128000,786432,8,V100M32
openb-node-0230,96000,393216,2,P100
openb-node-0231,96000,393216,2,P100
"""
_ACME = """\
job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,\
gpu_time
5778432,u5907,1,8,120,Other,COMPLETED,2023-03-01 00:00:00+08:00,2023-03-01 00:00:10+08:00,\
2023-03-01 00:10:10+08:00,600,10.0,4800
5778433,u7410,16,128,2048,Pretrain,CANCELLED,2023-03-01 00:01:00+08:00,2023-03-01 00:02:00+08:00,\
2023-03-02 00:02:00+08:00,86400,60.0,11059200
5778434,ü,0,0,1,"Debug, CPU",FAILED,2023-03-01 00:02:00+08:00,2023-03-01 00:02:00+08:00,\
2023-03-01 00:02:01+08:00,1,0.0,0
5778435,u7410,1,1,16,Eval,TIMEOUT,2023-03-01 00:03:00+08:00,2023-03-01 00:04:00+08:00,\
2023-03-01 01:04:00+08:00,3600,60.0,3600
5778436,u1,1,2,32,SFT,NODE_FAIL,2023-03-01 00:04:00+08:00,,,,,
"""
_ACME_PHILLY = """\
gpu_num,duration,state,queue
1,60,Pass,5
8,61.5,Killed,0
2,62,Failed,
0,0,Pass,100
4,63,COMPLETED,7
"""
_ACME_PAI = """\
plan_cpu,plan_gpu,wait_time,status,duration
600.0,50.0,5,Terminated,60.5
1200.0,,7,Failed,
600.0,100.0,,Running,61
100.0,25.0,0,Terminated,62
600.0,200.0,9,Failed,63
"""
_HELIOS = """\
job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue
1,uA,vcYVn,8,48,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:01:05,60,5
2,uB,vcYVn,0,1,1,FAILED,2020-04-01 00:00:10,2020-04-01 00:00:10,2020-04-01 00:00:11,1,0
3,uü,"vc, x",16,96,2,CANCELLED,2020-04-01 00:00:20,2020-04-01 00:00:30,2020-04-02 00:00:30,86400,10
4,uB,vcKeh,1,6,1,TIMEOUT,2020-04-01 00:00:30,2020-04-01 00:00:31,2020-04-01 00:00:32,1,1
5,uC,,1,6,1,NODE_FAIL,2020-04-01 00:00:40,2020-04-01 00:00:41,2020-04-01 00:00:43,2,1
"""
_PAI_SIM = """\
num_gpu,job_id,num_cpu,num_inst,submit_time,duration,user,group,gpu_type,wait_time,user_dur,\
user_gpu_dur,group_dur,group_gpu_dur
0.5,101,6,1,0,60,u1,g1,T4,5,55.5,56,57,58
1.0,102,6,4,10,61.9,u2,g2,MISC,0,,,,
0.0,103,12,1,20,0,ü,"g, 3",CPU,1,55,56,57,58
8.0,104,96,2,30,62,u1,g1,V100,2,55,56,57,58
1.0,105,6,1,40,63,u1,,P100,3,55,56,57,58
"""
_PAI_TOTALS = """\
job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,gpu_type,wait_time,\
user_dur,group_dur,group_gpu_dur
0,u1,0.0,2.0,1.0,34,n1,0,g1,CPU,3,386.0,6793.5,34.0
1,u1,3.0,72.0,12.0,15748,n1,3,g1,T4,2,386.0,6793.5,15199.0
2,ü,1.0,6.0,1.0,84,n2,5,"g, 2",MISC,18,693.0,67.0,66.0
6,u3,0.25,6.0,1.0,41382,n3,41,,T4,3,1205.5,28462.0,28462.0
7,u3,25.0,200.0,50.0,6621,n3,707,g3,MISC,,816.0,,6844.5
"""
_TIRESIAS = """\
job_id,num_gpu,submit_time,iterations,model_name,duration,interval
1,1,0,1000,vgg16,3600,0
2,8,30,25000,"resnet50, b",7200.5,0
3,4,30,10,größe,60,10
4,16,95,100,vgg19,1,0
5,2,96,7,alexnet,11,0
"""
_ASI = """\
pod_id,workload_id,server_id,gpu_spec_public,priority_class,job_type_public,model_type_public,\
is_genai_request,gpu_request,duration_hours,schedule_delay_sec,ready_delay_sec,ready_status,\
schedule_status
p1,w1,s1,A10,HP,training,genai,true,1.0,1.5,3,4,true,true
p2,w1,s1,A10,LP,dev,genai,true,0.5,0.25,,4,true,true
p3,,s2,H20,Other,dev,dev,false,8,240.25,100,4,true,false
p4,,,H20,HP,online_inference,rec,false,8,2,0,,false,true
p5,w2,s3,L20,LP,other,cv,false,0.1,0.5,7,1,true,true
"""
_DLRM = """\
instance_sn,role,app_name,cpu_request,cpu_limit,gpu_request,gpu_limit,rdma_request,rdma_limit,\
memory_request,memory_limit,disk_request,disk_limit,max_instance_per_node,creation_time,\
scheduled_time,deletion_time
instance_0,CN,app_0,12,16,0,0,1,1,24.0,30.0,64.0,80.0,-1,,,
instance_1,HN,app_0,64,64,1,1,25,100,200.0,240.0,100.0,120.0,1,,,2591000
instance_2,CN,"app, ü",12,16,0,0,1,1,24.0,30.0,64.0,80.0,-1,100,160,2591000
instance_3,HN,app_1,64,64,2,2,25,100,200.0,240.0,100.0,120.0,2,200,260.5,
instance_4,CN,app_1,12,16,0,0,1,1,24.0,30.0,64.0,80.0,-1,300,360,361
"""
_MORPHLING = """\
name,submission_time,duration,application,num_gpus,num_cpus,bandwidth,exec_plan,steps,is_sla
vit-0,0,3163.091667,vit,2,16,0,zero-dp,37239,0
llama30-1,1639,142.2190972,llama30,48,384,1.25,344,64,1
t5-2,3519,3312,t5,4,32,0,ga,8109,0
llama7-3,3672,1583.1375,llama7,8,64,0,zero-offload,168,1
bert-4,3700,9.5,bert,1,8,0,zero-dp,1,0
"""
_GENAI = """\
gmt_create,groupId,predict_type,checkpoint_model_version_id,predict_status,exec_time_seconds,\
prompt_length,negative_prompt_length,num_images_per_prompt,num_inference_steps,num_lora
2024-06-01 00:00:00.125,g1,TXT2IMG,m1,SUCCEED,4.5,100,20,4,30,2
2024-06-01 00:00:01,g1,IMG2IMG,m2,FAILED,0.5,101,,1,25,0
2024-06-01 00:00:02,g2,"TXT, é",m1,PENDING,0,102,5,1,20,1
2024-06-01 00:00:03,g3,TXT2IMG,,PROCESSING,9.25,103,5,2,20,3
2024-06-01 00:00:04,g1,UPSCALE,m3,SUCCEED,1,104,5,1,,0
"""
_SACCT = """\
JobID|JobName|User|Account|Partition|QOS|State|Submit|Eligible|Start|End|ElapsedRaw|Timelimit|\
Priority|NNodes|NCPUS|ReqMem|ReqTRES|AllocTRES|NodeList|Reason
1|train|ann|lab|gpu|normal|COMPLETED|2025-10-06T01:00:00|2025-10-06T01:00:00|2025-10-06T02:10:00|\
2025-10-06T02:20:00|600|30|10|1|8|64Gn|gres/gpu:a100=2,gres/gpu=2|cpu=8,gres/gpu=2|n1|None
1.batch|batch||lab|||COMPLETED|2025-10-06T01:00:00||2025-10-06T02:10:00|2025-10-06T02:20:00|600|||\
1|8|||cpu=8|n1|
2_[3-5%2]|größe|ann|lab|gpu|normal|PENDING|2025-10-06T01:10:00|Unknown|Unknown|Unknown|0|1-00|5|1|8|\
4Gc|gres/gpu=1||None assigned|Priority
3|x|bob||gpu||CANCELLED by 7|2025-10-06T01:20:00|2025-10-06T01:20:00|None|2025-10-06T01:30:00|0|\
UNLIMITED|1|1|8|0|gres/gpu=4||None assigned|None
4|y|bob|lab|gpu|high|TIMEOUT|2025-10-06T05:00:00|2025-10-06T05:00:00|2025-10-06T05:10:00|\
2025-10-06T05:20:00|600|10|2|2|16|1T|gres/gpu=2|cpu=16,gres/gpu=2,mem=1.5T|n[1-2]|None
5|z|eve|lab|gpu|high|RUNNING|2025-10-06T06:00:00|2025-10-06T06:00:00|2025-10-06T06:10:00|Unknown|\
3600|10:00:00|2|1|8|64G|gres/gpu=1|cpu=8,gres/gpu=1|n3|None
"""
_BATSIM = """\
job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,\
final_state,starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,\
allocated_resources,consumed_energy,metadata
1,w0,p1,0,4,100,1,COMPLETED_SUCCESSFULLY,5,60,65,5,65,1.083333,0-3,-1,
2,w0,p2,10,1,100,0,COMPLETED_WALLTIME_REACHED,10,100,110,0,100,1,7,12.5,"{""k"": ""ü""}"
3,w0,p1,20,64,100,0,REJECTED,,,,,,,,-1,
4,w0,p1,30,2,-1,1,COMPLETED_SUCCESSFULLY,35,60,95,5,65,1.083333,4-5,-1,
5,w0,p3,40,3,100,0,COMPLETED_KILLED,45,60,105,5,65,1.083333,0 2-3,-1,
"""
_OPENDC = """\
id,name,submission_time,duration,cpu_count,cpu_capacity,mem_capacity,gpu_count,gpu_capacity,\
parents,children,nature,deadline
1,größe,1759752000000,3600000,96,268800.0,983040,8,11280.0,,2,,-1
2,b,1759752600000,3000,8,16000.0,2048,,,1,,deferrable,1759752610500
3,"c, d",1759752700000,60000,8,16000.0,2048,1,1410.0,,,,-1
4,,1759752800000,61000,8,16000.0,2048,0,,,,,-1
5,e,1759752900000,62500,8,16000.0,2048,2,2820.0,,,,
"""
_FRAGMENTS = """\
id,duration,cpu_usage,gpu_usage
1,900000,268800.0,0
1,2700000,134400.0,8460.0
2,3000,8000.5,
3,60000,16000.0,1410.0
9,1,1,1
"""
_SPOT = """\
job_name,organization,gpu_model,cpu_request,gpu_request,worker_num,submit_time,duration,job_type
job_0,0,A100-SXM4-80GB,16,1.0,1,0,60,HP
job_1,1,A10,8,0.5,1,10,61,Spot
job_2,1,"H800, ü",128,8.0,16,20,86400,HP
job_3,,GPU-series-1,8,1.0,2,30,62.5,Spot
job_4,2,A10,8,1.0,1,40,63,HP
"""
_SPOT_NODES = """\
node_name,gpu_model,gpu_capacity_num,cpu_num
node_0,A100-SXM4-80GB,8,128
node_1,A100-SXM4-80GB,8,128
node_2,A10,2,64
node_3,"H800, ü",8,192
node_4,A10,2,64
"""


def _ids(found: Grid, column: str) -> tuple[str, ...]:
    at = found.columns.index(column)
    return tuple(cells[at] for cells in found.rows)


def _numbered(found: Grid, stem: str) -> tuple[str, ...]:
    return tuple(f"{stem}-{number}" for number in range(1, len(found.rows) + 1))


def _csv(
    reader: str,
    file: str,
    text: str,
    ids: str = "",
    *,
    given: tuple[str, ...] | None = None,
    **more: Any,
) -> Sample:
    """Return the sample of a CSV format.

    Args:
        reader: its name.
        file: the file's name.
        text: its content.
        ids: the column of the jobs' ids, or the stem of numbered ones.
        given: the ids themselves, in place of ``ids``.
        more: attributes of the sample.
    """
    found = grid(text)
    if given is None:
        given = _ids(found, ids) if ids in found.columns else _numbered(found, ids)
    defaults: dict[str, Any] = {
        "name": reader,
        "file": file,
        "data": text.encode(),
        "records": len(found.rows),
        "read": reading_trace(reader),
        "count": counting(found),
        "grid": found,
        "ids": given,
    }
    return Sample(**defaults | more)


def _beside(reader: str, main: tuple[str, str], file: str, text: str, **options: Any) -> Sample:
    """Return the sample of a file that stands beside a trace and says more about it."""
    name, trace = main
    records = len(grid(trace).rows)
    return _csv(
        reader,
        file,
        text,
        name=f"{reader} {file}",
        records=records,
        read=reading_trace(reader, main=name, **options),
        count=lambda _: records,
        given=(),
        beside={name: trace.encode()},
    )


def _swf() -> Sample:
    names = (
        "job submit wait run procs cpu used_mem req_procs req_time req_mem status user group "
        "executable queue partition preceding think"
    )
    found = grid(_SWF, mark=" ", quoted=False, columns=names)
    return Sample(
        name="swf",
        file="log.swf",
        data=_SWF.encode(),
        records=len(found.rows),
        read=reading_trace("swf"),
        count=counting_lines(";"),
        grid=found,
        ids=_ids(found, "job"),
    )


def _gavel() -> Sample:
    return _tabbed(
        "gavel",
        _GAVEL,
        "job_type command working_directory steps_argument needs_data total_steps scale_factor "
        "priority_weight slo arrival_time",
    )


def _shockwave() -> Sample:
    return _tabbed(
        "shockwave",
        _SHOCKWAVE,
        "job_type command working_directory steps_argument needs_data total_steps scale_factor "
        "mode priority_weight slo generated_duration arrival_time",
    )


def _tabbed(name: str, text: str, names: str) -> Sample:
    """Return a sample without a header, whose job ids are its lines."""
    found = grid(text, mark="\t", quoted=False, columns=names)
    return Sample(
        name=name,
        file="jobs.trace",
        data=text.encode(),
        records=len(found.rows),
        read=reading_trace(name),
        count=counting_lines("\0 no line is a comment"),
        grid=found,
        ids=tuple(str(row) for row in range(len(found.rows))),
    )


_TASKS = re.compile(r"\[(\d{1,4})-(\d{1,4})(?:%\d+)?\]\Z", re.ASCII)


def _count_sacct(data: bytes) -> int | None:
    """Count rows, a list of array tasks as its tasks; None where a list is not of the sample's."""
    try:
        lines = re.split(r"\r\n|\r|\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return None
    header, *rows = [line for line in lines if line.strip()] or [""]
    names = [name.strip().lower() for name in header.split("|")]
    if "jobid" not in names or any(row.count("|") != header.count("|") for row in rows):
        return None
    total = 0
    for row in rows:
        cell = row.split("|")[names.index("jobid")].strip()
        found = _TASKS.search(cell)
        if "[" in cell and (found is None or "." in cell):
            return None
        total += 1 if found is None else int(found[2]) - int(found[1]) + 1
    return total


def _sacct() -> Sample:
    found = grid(_SACCT, mark="|", quoted=False)
    return Sample(
        name="sacct",
        file="jobs.psv",
        data=_SACCT.encode(),
        records=8,
        read=reading_trace("sacct", zone="Europe/Berlin"),
        count=_count_sacct,
        grid=found,
        coupled=frozenset({"JobID"}),  # of two jobs of one id the second is numbered
        ids=("1", "", "2_3\n2_4\n2_5", "3", "4", "5"),
    )


def trace_samples() -> list[Sample]:
    """Return the samples of delimited text."""
    joined = grid(_HELIOS)
    clusters = ("Venus", "Venus", "Earth", "Saturn", "Uranus")
    all_clusters = "cluster," + ",".join(joined.columns) + "\n" + "".join(
        f"{cluster},{joined.line_of(cells)}\n"
        for cluster, cells in zip(clusters, joined.rows, strict=True)
    )  # fmt: skip
    ids = tuple(
        f"{cluster}/{name}"
        for cluster, name in zip(clusters, _ids(joined, "job_id"), strict=True)
    )  # fmt: skip
    return [
        _csv("native", "jobs.csv", _NATIVE, "job_id"),
        _swf(),
        _csv("philly", "philly.csv", _PHILLY, "philly"),
        _csv("openb", "pods.csv", _OPENB, "name"),
        _beside("openb", ("pods.csv", _OPENB), "openb_node_list_all_node.csv", _OPENB_NODES),
        _csv("acme", "trace_seren.csv", _ACME, "job_id"),
        _csv("acme-philly", "philly_trace.csv", _ACME_PHILLY, "philly"),
        _csv("acme-pai", "pai_trace.csv", _ACME_PAI, "pai"),
        _csv("helios", "cluster_log.csv", _HELIOS, "job_id"),
        _csv("acme-helios", "all_cluster_log.csv", all_clusters, given=ids),
        _csv("pai-sim", "pai_job.csv", _PAI_SIM, "job_id"),
        _csv("pai-sim-totals", "pai_totals.csv", _PAI_TOTALS, "job_id"),
        _csv("tiresias", "60_job.csv", _TIRESIAS, "job_id"),
        _csv("asi", "asi_opensource_job_execution_summary.csv", _ASI, "pod_id"),
        _csv("dlrm", "disaggregated_DLRM_trace.csv", _DLRM, "instance_sn"),
        _csv("morphling", "workload-base.csv", _MORPHLING, "name"),
        _csv("genai", "lora_request_trace.csv", _GENAI, "genai"),
        _sacct(),
        _gavel(),
        _shockwave(),
        _csv("pollux", "workload.csv", _POLLUX, "name"),
        _csv("batsim", "jobs.csv", _BATSIM, "job_id", coupled=frozenset({"workload_name"})),
        _csv("opendc", "my_tasks.csv", _OPENDC, "id"),
        _beside("opendc", ("my_tasks.csv", _OPENDC), "my_fragments.csv", _FRAGMENTS),
        _csv("spot", "job_info_df.csv", _SPOT, "job_name"),
        _beside("spot", ("job_info_df.csv", _SPOT), "node_info_df.csv", _SPOT_NODES),
    ]
